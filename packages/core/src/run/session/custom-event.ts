/** Custom user events on the event stream of a run, emitted by a node or a hook. */

import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import type { Json } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { emit } from "../events/events.ts";
import { getErrorPlace } from "./parts/position.ts";
import type { Session } from "./session.ts";
import { validateEncodable } from "./validate-writes.ts";

/**
 * Emits a custom event. Throws `invalid_option` for a name that is no string, and `unencodable_value` for a payload
 * that cannot be encoded.
 */
export function emitCustomEvent(
  session: Pick<Session, "env" | "position" | "events">,
  { node, id: task }: Task,
  name: string,
  payload: Json,
): void {
  const place = getErrorPlace(session.position, { node, task });
  if (typeof name !== "string") {
    ignoreRejections(name);
    throw invalidOption({
      where: `emit in the node "${node}"`,
      expected: "a string as event name",
      got: name,
      fix: "Pass a string",
      place,
    });
  }
  validateEncodable(session.env.codec, payload, `the event "${name}"`, place);
  emit(session.events, { type: "custom", node, task, name, payload: session.env.redactor.redact(payload) });
}
