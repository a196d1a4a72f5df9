/** Errors as a run saves and emits them, with the run's secrets redacted. */

import { type ErrorRecord, fromErrorRecord, toErrorRecord } from "../../base/errors.ts";
import type { Redactor } from "../../base/redaction/redactor.ts";

/** Converts anything thrown to a redacted error record. */
export function toRedactedRecord(redactor: Redactor, thrown: unknown): ErrorRecord {
  return redactor.redact(toErrorRecord(thrown));
}

/**
 * Returns the error itself, or a copy with the same code, redacted message and causes when the error contains a
 * secret.
 */
export function redactError<Thrown>(redactor: Redactor, thrown: Thrown): Thrown {
  const record = toErrorRecord(thrown);
  const hidden = redactor.redact(record);
  return hidden === record ? thrown : (fromErrorRecord(hidden) as Thrown);
}
