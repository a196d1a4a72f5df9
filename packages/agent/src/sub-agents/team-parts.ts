/** Merges the declarations of a team's agents: channels, context, input and output. */
import type { Channel, ContextDefinition, GraphDefinition, Schema } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import type { TeamConfig, TeamConversation } from "./team-config.ts";

type Channels = { readonly [name: string]: Channel };

/**
 * Merges the channels of all agents. Throws `invalid_option` for channels with the same name and different reducers.
 */
export function mergeChannels(team: string, parts: readonly { readonly channels?: Channels }[]): Channels {
  const merged: Record<string, Channel> = {};
  for (const { channels = {} } of parts)
    for (const [name, channel] of Object.entries(channels)) {
      const existing = Object.hasOwn(merged, name) ? merged[name] : undefined;
      if (
        existing !== undefined &&
        existing !== channel &&
        (existing.kind !== channel.kind || channel.kind === "reduce")
      )
        throw invalidOption({
          where: `team "${team}"`,
          expected: `one reducer of the channel "${name}"`,
          found: "different reducers of two agents",
          fix: 'Use the same channel or the same middleware in both, or rename one, such as budget({ name: "…" })',
        });
      merged[name] = channel;
    }
  return merged;
}

/** Merges the context schemas of all agents; undefined without a context. */
export function mergeContexts(graphs: readonly GraphDefinition[]): ContextDefinition | undefined {
  const schemas = [...new Set(graphs.flatMap(({ context }) => context?.schema ?? []))] as readonly Schema[];
  const [first] = schemas;
  if (first === undefined) return undefined;
  return { schema: schemas.length === 1 ? first : combineSchemas(schemas) } as ContextDefinition;
}

/** Creates a schema that validates with each schema and merges the results. */
function combineSchemas(schemas: readonly Schema[]): Schema {
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value) => {
        const parsed = schemas.map((schema) => schema["~standard"].validate(value));
        const asyncResult = parsed.find((each) => each instanceof Promise);
        if (asyncResult !== undefined) return asyncResult;
        const issues = parsed.flatMap((each) => (each instanceof Promise ? [] : (each.issues ?? [])));
        if (issues.length > 0) return { issues };
        return { value: Object.assign({}, ...parsed.map((each) => ("value" in each ? each.value : {}))) as unknown };
      },
    },
  };
}

/**
 * Creates the input schema of a team: resets the turn counts of agents, and with `inputTo: "start"` the active agent.
 */
export function createTeamInput(
  { inputTo, start }: TeamConfig,
  graphs: readonly GraphDefinition[],
): Schema<never, never> | undefined {
  const schemas = [...new Set(graphs.flatMap(({ input }) => input ?? []))];
  if (schemas.length === 0 && inputTo === "active") return undefined;
  const combined = schemas.length === 0 ? undefined : combineSchemas(schemas);
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value) => {
        const input = inputTo === "start" ? { activeAgent: start, ...(value as object) } : value;
        return (combined === undefined ? { value: input } : combined["~standard"].validate(input)) as never;
      },
    },
  };
}

/**
 * Creates the output schema of a team: the output of the agent that is active at the end; undefined without
 * structured output.
 */
export function createTeamOutput({ members }: TeamConfig): Schema<unknown, never> | undefined {
  if (![...members.values()].some(({ graph }) => graph.output !== undefined)) return undefined;
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (state) => {
        const { graph } = members.get((state as TeamConversation).activeAgent) ?? {};
        return (graph?.output?.["~standard"].validate(state) ?? { value: undefined }) as never;
      },
    },
  };
}
