/** Error of a second answer to an interrupt. */
import { type ErrorPlace, StatewrightError } from "../../base/errors.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { Codec } from "../../state/codec.ts";

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

function formatTime(at: number | undefined): string {
  return at === undefined || !Number.isFinite(at) || Math.abs(at) > 8.64e15 ? "" : ` at ${new Date(at).toISOString()}`;
}
