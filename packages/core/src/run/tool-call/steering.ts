/**
 * Steering of a tool node: between two units of its calls it looks whether somebody has spoken. Calls that have not begun
 * are skipped then, each with an answer that says why; what is at work is never cut off, and its results stay.
 */

import type { ToolNode } from "../../define/tool-node.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { hearsMessages, type Letter } from "../session/inbox.ts";
import type { Session } from "../session/session.ts";
import { lookInto, steeringIn } from "../superstep/drain-inbox.ts";

/** Look whether calls that have not begun are to be skipped; gives the answer that they get. */
export async function lookForSteering(
  { steering }: ToolNode<never, never>,
  session: Session,
): Promise<ToolError | undefined> {
  const { inbox, within, abort, plan } = session;
  if (steering === "finish-batch" || !inbox.mayHold()) return undefined;
  if (within !== undefined || abort.signal.aborted || !hearsMessages(plan)) return undefined;
  const steer = steeringIn(await lookInto(session));
  if (steer.length === 0 || abort.signal.aborted) return undefined;
  inbox.arrived(steer.map(({ id }) => id));
  return new ToolError("skipped", `Skipped: ${sourceOf(steer)} is queued and comes first.`);
}

/** So often a run whose tools are at work looks for what other processes have sent, in milliseconds. */
const lookAgainMs = 1_000;

/** Look now and then whether somebody has spoken elsewhere, so that long waits may end early; the returned function ends that. */
export function watchInbox(session: Session): () => void {
  const { saved, inbox, within, world } = session;
  if (saved === undefined || saved.store.local === true || within !== undefined || !inbox.mayHold()) return neverBegun;
  let isOver = false;
  const look = async (): Promise<void> => {
    const steer = steeringIn(await lookInto(session));
    if (isOver) return;
    if (steer.length > 0) inbox.arrived(steer.map(({ id }) => id));
    else cancel = world.schedule.after(lookAgainMs, () => void look());
  };
  let cancel = neverBegun;
  // Many tools have ended by then: they need no timer.
  world.schedule.soon(() => {
    if (!isOver) cancel = world.schedule.after(lookAgainMs, () => void look());
  });
  return () => {
    isOver = true;
    cancel();
  };
}

function neverBegun(): void {
  // Nobody else can have sent anything, or nobody has looked yet.
}

/** Who has spoken: a note of the system is not blamed on the user. */
function sourceOf(letters: readonly Letter[]): string {
  const isFromUser = letters.some(({ messages }) => messages.some(({ role }) => role === "user"));
  return isFromUser ? "a message of the user" : "a note of the system";
}
