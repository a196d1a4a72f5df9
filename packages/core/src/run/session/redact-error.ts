/** Errors as a run saves and tells them: without the secrets that it has asked for. */
import { type ErrorRecord, fromErrorRecord, toErrorRecord } from "../../base/errors.ts";
import type { Session } from "./session.ts";

/** Anything thrown as its record. */
export function recordOf(session: Session, thrown: unknown): ErrorRecord {
  return session.mask.hide(toErrorRecord(thrown));
}

/** The error itself, or one of the same code, message and causes in its place, where a secret stood in it. */
export function withoutSecrets<Thrown>(session: Session, thrown: Thrown): Thrown {
  const record = toErrorRecord(thrown);
  const hidden = session.mask.hide(record);
  return hidden === record ? thrown : (fromErrorRecord(hidden) as Thrown);
}
