/** Errors as a run saves and emits them, with the run's secrets redacted. */
import { type ErrorRecord, fromErrorRecord, toErrorRecord } from "../../base/errors.ts";
import type { Session } from "./session.ts";

/** Converts anything thrown to a redacted error record. */
export function toRedactedRecord(session: Session, thrown: unknown): ErrorRecord {
  return session.redactor.redact(toErrorRecord(thrown));
}

/**
 * Returns the error itself, or a copy with the same code, redacted message and causes when the error contains a
 * secret.
 */
export function redactError<Thrown>(session: Session, thrown: Thrown): Thrown {
  const record = toErrorRecord(thrown);
  const hidden = session.redactor.redact(record);
  return hidden === record ? thrown : (fromErrorRecord(hidden) as Thrown);
}
