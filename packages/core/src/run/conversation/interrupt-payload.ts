/** Payload of an interrupt. */

import { checkSyncResult } from "../../base/async-schema.ts";
import { type ErrorPlace, StatewrightError } from "../../base/errors.ts";
import { describeIssues, parseWith } from "../../base/schema.ts";
import { getPayloadSchema, type InterruptDeclaration } from "../../tool/policy/interrupt.ts";

/**
 * Parses the payload of an interrupt with its declared schema. `owner` names the source in errors, such as `the node
 * "pay"`. Throws `invalid_update`.
 */
export function readPayload(
  owner: string,
  key: string,
  declared: InterruptDeclaration,
  { payload, place }: { readonly payload: unknown; readonly place: ErrorPlace },
): unknown {
  const schema = getPayloadSchema(declared);
  if (schema === undefined) return payload ?? null;
  const parsed = parseWith(schema, payload);
  if (parsed.ok) return parsed.value;
  checkSyncResult(parsed, `the payload of the interrupt "${key}"`, place);
  throw new StatewrightError("invalid_update", {
    what: `${owner} raised the interrupt "${key}" with a payload that its schema rejects: ${describeIssues(parsed.issues)}`,
    next: "Pass a payload that matches the interrupt's payload schema",
    place,
    details: parsed.issues,
    cause: parsed.cause,
  });
}
