/** Error of a second answer to an interrupt. */
import { type ErrorPlace, StatewrightError } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { Codec } from "../../state/codec.ts";

/** `answeredBy` of an interrupt that a migration replaced by another one. */
export const migrationAuthor = "a migration";

/**
 * Creates `already_answered` for a closed interrupt with an answer. The message names who answered and when, and
 * `details` hold the first answer, `answeredAt` in milliseconds since the epoch, and `answeredBy` if the answer has an
 * author.
 */
export function createAnsweredError(
  codec: Codec,
  { id, key, answer = "null", answeredAt, answeredBy, expiredAt }: InterruptRow,
  place: ErrorPlace,
): StatewrightError {
  if (answeredBy === migrationAuthor) return createMigratedError(codec, { id, key, answer, answeredAt }, place);
  const author = answeredBy === undefined ? "" : ` by "${answeredBy}"`;
  const time = formatTime(answeredAt ?? expiredAt);
  return new StatewrightError("already_answered", {
    what:
      expiredAt === undefined
        ? `the interrupt "${key}" (${id}) was answered${author}${time}`
        : `the interrupt "${key}" (${id}) expired${time} with its declared answer`,
    next: "Use the first answer, in details: later answers are ignored",
    place,
    details: {
      interrupt: id,
      answer: codec.decode(answer),
      answeredAt,
      ...(answeredBy === undefined ? {} : { answeredBy }),
      ...(expiredAt === undefined ? {} : { expiredAt }),
    },
  });
}

/** Creates the error of an answer to an interrupt that a migration gave another id: the message names that id. */
function createMigratedError(
  codec: Codec,
  { id, key, answer, answeredAt }: Pick<InterruptRow, "id" | "key" | "answeredAt"> & { readonly answer: string },
  place: ErrorPlace,
): StatewrightError {
  const record = codec.decode(answer);
  const successor = isPlainObject(record) ? record["migrated"] : undefined;
  return new StatewrightError("already_answered", {
    what: `the interrupt "${key}" (${id}) was replaced by a migration${formatTime(answeredAt)}`,
    next:
      typeof successor === "string"
        ? `Answer the interrupt ${successor} instead`
        : "List the open interrupts, and answer one of them",
    place,
    details: { interrupt: id, answer: record, answeredAt, answeredBy: migrationAuthor },
  });
}

function formatTime(at: number | undefined): string {
  return at === undefined || !Number.isFinite(at) || Math.abs(at) > 8.64e15 ? "" : ` at ${new Date(at).toISOString()}`;
}
