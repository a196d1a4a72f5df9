/** Compatibility of a recorded task outcome with a graph that may have changed. */
import { describeIssues } from "../../base/schema.ts";
import type { Plan } from "../../compile/plan.ts";
import { END } from "../../define/edge.ts";
import type { TaskOutcome, Write } from "../session/returns.ts";

/** Incompatibility of a recorded outcome: a clause for messages, and the channel of a write. */
export interface OutcomeIncompatibility {
  readonly reason: string;
  readonly channel?: string;
}

/** Lists all incompatibilities; empty for a compatible outcome. */
export function findOutcomeIncompatibilities(
  plan: Plan,
  { writes, routes }: TaskOutcome,
): readonly OutcomeIncompatibility[] {
  const invalidWrites = writes.flatMap((write): readonly OutcomeIncompatibility[] => {
    const why = findWriteIssue(plan, write);
    return why === undefined ? [] : [{ reason: why, channel: write.channel }];
  });
  const invalidRoutes = routes.flatMap(({ target }): readonly OutcomeIncompatibility[] =>
    target === END || plan.nodes.has(target) ? [] : [{ reason: `routes to "${target}", which is not a node` }],
  );
  return [...invalidWrites, ...invalidRoutes];
}

function findWriteIssue(plan: Plan, write: Write): string | undefined {
  const { channels } = plan.graph.state;
  const channel = Object.hasOwn(channels, write.channel) ? channels[write.channel] : undefined;
  if (channel === undefined) return `writes the channel "${write.channel}", which the state does not have`;
  const parsed = write.kind === "reduce" ? channel.parse(write.value) : channel.parseValue(write.value);
  if (parsed.ok) return undefined;
  return `writes a value to the channel "${write.channel}" that its schema rejects: ${describeIssues(parsed.issues)}`;
}
