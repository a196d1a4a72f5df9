/** Whether a recorded result of a task has its place in a graph that may have changed since. */
import { issuesText } from "../../base/schema.ts";
import type { Plan } from "../../compile/plan.ts";
import { END } from "../../define/edge.ts";
import type { TaskOutcome, Write } from "../session/returns.ts";

/** What a recorded result says that the graph does not take: the end of a sentence, and the channel where it is a write. */
export interface Unfit {
  readonly why: string;
  readonly channel?: string;
}

/** All of it; nothing for a result that fits. */
export function unfitOf(plan: Plan, { writes, leads }: TaskOutcome): readonly Unfit[] {
  const refused = writes.flatMap((write): readonly Unfit[] => {
    const why = refusalOf(plan, write);
    return why === undefined ? [] : [{ why, channel: write.channel }];
  });
  const lost = leads.flatMap(({ target }): readonly Unfit[] =>
    target === END || plan.nodes.has(target) ? [] : [{ why: `leads to "${target}", which is no node` }],
  );
  return [...refused, ...lost];
}

function refusalOf(plan: Plan, write: Write): string | undefined {
  const { channels } = plan.graph.state;
  const channel = Object.hasOwn(channels, write.channel) ? channels[write.channel] : undefined;
  if (channel === undefined) return `writes the channel "${write.channel}", which the state does not have`;
  const parsed = write.kind === "fold" ? channel.parse(write.value) : channel.parseValue(write.value);
  if (parsed.ok) return undefined;
  return `writes to the channel "${write.channel}" what its schema refuses: ${issuesText(parsed.issues)}`;
}
