/**
 * Returns an idempotency key without the random part of its thread, so that keys of a run with faults and of the run
 * without faults are comparable.
 */
export function toStableKey(idempotencyKey: string): string {
  return idempotencyKey.replace(/^([^/]+)\/[0-9a-z]{12}\//, "$1/");
}
