/** What the agents of a team declare, together: their channels, their context, what an input begins, and the output. */
import {
  type Channel,
  type ContextDefinition,
  type GraphDefinition,
  type Schema,
  StatewrightError,
} from "@statewright/core";
import type { TeamRules, TeamTalk } from "./team-config.ts";

type Channels = { readonly [name: string]: Channel };

/** The channels of all agents. Throws `invalid_option` for two of one name that fold differently, of which only one could be kept. */
export function channelsOf(team: string, parts: readonly { readonly channels?: Channels }[]): Channels {
  const all: Record<string, Channel> = {};
  for (const { channels = {} } of parts)
    for (const [name, channel] of Object.entries(channels)) {
      const known = Object.hasOwn(all, name) ? all[name] : undefined;
      if (known !== undefined && known !== channel && (known.kind !== channel.kind || channel.kind === "reduce"))
        throw new StatewrightError("invalid_option", {
          what: `two agents of the team "${team}" have a channel "${name}", and fold what is written to it differently`,
          next: 'Give both the same channel or the same middleware, or one of them another name, such as budget({ name: "…" })',
        });
      all[name] = channel;
    }
  return all;
}

/** The context that all agents need. */
export function contextOf(graphs: readonly GraphDefinition[]): ContextDefinition | undefined {
  const schemas = [...new Set(graphs.flatMap(({ context }) => context?.schema ?? []))] as readonly Schema[];
  const [only] = schemas;
  if (only === undefined) return undefined;
  return { schema: schemas.length === 1 ? only : allOf(schemas) } as ContextDefinition;
}

/** Parsed by each schema; what they give is laid together. */
function allOf(schemas: readonly Schema[]): Schema {
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value) => {
        const parsed = schemas.map((schema) => schema["~standard"].validate(value));
        const later = parsed.find((each) => each instanceof Promise);
        if (later !== undefined) return later;
        const issues = parsed.flatMap((each) => (each instanceof Promise ? [] : (each.issues ?? [])));
        if (issues.length > 0) return { issues };
        return { value: Object.assign({}, ...parsed.map((each) => ("value" in each ? each.value : {}))) as unknown };
      },
    },
  };
}

/** What an input begins: the counts of the agents, and with `inputTo` the agent of the start. */
export function inputOf(
  { inputTo, start }: TeamRules,
  graphs: readonly GraphDefinition[],
): Schema<never, never> | undefined {
  const schemas = [...new Set(graphs.flatMap(({ input }) => input ?? []))];
  if (schemas.length === 0 && inputTo === "active") return undefined;
  const whole = schemas.length === 0 ? undefined : allOf(schemas);
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (given) => {
        const input = inputTo === "start" ? { activeAgent: start, ...(given as object) } : given;
        return (whole === undefined ? { value: input } : whole["~standard"].validate(input)) as never;
      },
    },
  };
}

/** The output of a team is that of the agent that has the conversation at the end, where agents have outputs of their own. */
export function outputOf({ members }: TeamRules): Schema<unknown, never> | undefined {
  if (![...members.values()].some(({ graph }) => graph.output !== undefined)) return undefined;
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (state) => {
        const { graph } = members.get((state as TeamTalk).activeAgent) ?? {};
        return (graph?.output?.["~standard"].validate(state) ?? { value: undefined }) as never;
      },
    },
  };
}
