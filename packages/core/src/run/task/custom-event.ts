/** An event of the user's own on the stream of a run, told by a node or a hook. */

import { StatewrightError } from "../../base/errors.ts";
import { disregardPromises } from "../../base/ignore-rejections.ts";
import { describeValue, type Json } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { emit, placeOf, type Session } from "../session/session.ts";
import { admit } from "../session/validate-writes.ts";

/** Tell it. Throws `invalid_option` for a name that is no text, `unencodable_value` for what cannot be sent on. */
export function tellCustom(session: Session, { node, id: task }: Task, name: string, payload: Json): void {
  const place = placeOf(session, { node, task });
  if (typeof name !== "string") {
    disregardPromises(name);
    throw new StatewrightError("invalid_option", {
      what: `the node "${node}" gave an event the name ${describeValue(name)}`,
      next: "Give a text",
      place,
    });
  }
  admit(session.codec, payload, `the event "${name}"`, place);
  emit(session, { type: "custom", node, task, name, payload: session.mask.hide(payload) });
}
