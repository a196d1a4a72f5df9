/** Removes the random part of idempotency keys of the thread `t` from a text. */
export function removeKeySalt(text: string): string {
  return text.replaceAll(/\bt\/[0-9a-z]{12}\//g, "t/");
}
