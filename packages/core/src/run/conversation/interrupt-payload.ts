/** What a question shows to people. */

import { checkAnswered } from "../../base/async-schema.ts";
import { type ErrorPlace, StatewrightError } from "../../base/errors.ts";
import { issuesText, parseWith } from "../../base/schema.ts";
import { type InterruptDeclaration, payloadSchema } from "../../tool/policy/interrupt.ts";

/** The payload of a question as its declaration parses it; `asker` is who asks, such as `the node "pay"`. Throws `invalid_update`. */
export function readPayload(
  asker: string,
  key: string,
  declared: InterruptDeclaration,
  payload: unknown,
  place: ErrorPlace,
): unknown {
  const schema = payloadSchema(declared);
  if (schema === undefined) return payload ?? null;
  const parsed = parseWith(schema, payload);
  if (parsed.ok) return parsed.value;
  checkAnswered(parsed, `the payload of the interrupt "${key}"`, place);
  throw new StatewrightError("invalid_update", {
    what: `${asker} asked "${key}" with a payload that its schema refuses: ${issuesText(parsed.issues)}`,
    next: "Show what the interrupt declares",
    place,
    details: parsed.issues,
    cause: parsed.cause,
  });
}
