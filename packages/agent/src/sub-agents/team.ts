/**
 * Team: agents that share a conversation and hand the conversation over; a single graph with a model node and a tool
 * node per agent.
 */

import {
  channel,
  defineGraph,
  defineState,
  END,
  type Graph,
  type GraphDefinition,
  type GraphTypes,
  type Middleware,
  route,
  type Schema,
  START,
  type StateTypes,
  type StatewrightError,
  type Store,
} from "@statewright/core";
import {
  checkChoice,
  checkCount,
  checkId,
  checkOptions,
  invalidOption,
  listOptionNames,
  nodeKind,
} from "@statewright/core/adapter";
import { type Agent, addAgentMethods } from "../agent/create-agent.ts";
import { mergeInterrupts } from "../agent/merge-interrupts.ts";
import { getHandoff } from "./handoff.ts";
import {
  createHandoffGuard,
  createView,
  createViewMiddleware,
  type Member,
  type TeamConfig,
  type TeamConversation,
  wrapModelNode,
} from "./team-config.ts";
import { createTeamInput, createTeamOutput, mergeChannels, mergeContexts } from "./team-parts.ts";

/** Agent of a team, created with `createAgent`. */
export type TeamMember = GraphDefinition & { readonly types?: Pick<GraphTypes, "state" | "context" | "given"> };

/** Definition of a team: agents, routing of user input, and limits. */
export interface TeamOptions<Members extends readonly TeamMember[]> {
  /** Name of the team: the name of its graph in runs, events and errors. */
  readonly name: string;
  /**
   * Version of the team; increment the version when pending threads must not continue with the changed team. Default
   * 1.
   */
  readonly version?: number;
  /** Agents of the team; an agent with `handoff` tools can hand the conversation over to the named agents. */
  readonly agents: Members;
  /** Name of the agent that starts a conversation. Default: the first agent. */
  readonly start?: NoInfer<Members[number]["name"]>;
  /** Agent that receives the next input of a thread: the active agent (default), or the start agent. */
  readonly inputTo?: "active" | "start";
  /** Maximum handoffs per user input; further handoffs are denied with an error result for the model. Default 10. */
  readonly maxHandoffs?: number;
  /** Middleware for all model and tool calls, outside the middleware of the agents. */
  readonly middleware?: readonly Middleware[];
  /** Store of the team's threads; the options of a run override this store. */
  readonly store?: Store;
  /** Number of inbox messages delivered at a time. Default `all`. */
  readonly inbox?: "one" | "all";
}

/** State of a team, in addition to the conversation and the channels of its agents. */
export interface TeamState extends StateTypes {
  /** Name of the active agent. */
  readonly state: { readonly activeAgent: string };
  readonly update: { readonly activeAgent?: string };
  readonly input: { readonly activeAgent?: string | undefined };
}

type MembersContextInput<Members> = Members extends readonly (infer Member)[]
  ? ContextIntersection<Member extends { readonly types?: infer Types } ? NonNullable<Types> : never>
  : unknown;
type ContextIntersection<Types> = (
  Types extends { readonly given: infer Given }
    ? (given: Given) => void
    : never
) extends (given: infer All) => void
  ? All
  : unknown;

/** Team: a graph with the methods of an agent, except `setTools`. */
export type Team<ContextInput = unknown> = Omit<Agent<TeamState, unknown, ContextInput>, "setTools">;

/**
 * Creates a team. The conversation is a single list of messages: a handoff is a tool call with a result, and the next
 * model request is made by the other agent. Events carry the agent's name as node; `state.activeAgent` is the active
 * agent. Throws `invalid_option` for invalid agents, duplicate names, and handoffs to an agent outside the team.
 */
export function team<const Members extends readonly TeamMember[]>(
  options: TeamOptions<Members>,
): Team<MembersContextInput<Members>> {
  checkOptions("team", options, optionList);
  const { name, store } = options;
  const agent = addAgentMethods(createTeamGraph(options as AnyTeamOptions), { name, store, tools: undefined });
  return agent as Team<MembersContextInput<Members>>;
}

type AnyTeamOptions = Omit<TeamOptions<readonly TeamMember[]>, "start"> & { readonly start?: string };

const optionList = listOptionNames<TeamOptions<readonly TeamMember[]>>({
  name: true,
  version: true,
  agents: true,
  start: true,
  inputTo: true,
  maxHandoffs: true,
  middleware: true,
  store: true,
  inbox: true,
});

function createTeamGraph(options: AnyTeamOptions): Graph {
  const { name, version = 1, inbox, middleware } = options;
  checkId("team name", name);
  const config = parseTeamConfig(options);
  const members = [...config.members.values()];
  const graphs = members.map(({ graph }) => graph);
  const teamMiddleware = middleware ?? [];
  const context = mergeContexts(graphs);
  const input = createTeamInput(config, graphs);
  const output = createTeamOutput(config);
  const definition = defineGraph({
    name,
    version,
    state: defineState({
      ...(mergeChannels(name, [...graphs.map(({ state }) => state), ...teamMiddleware]) as Record<never, never>),
      activeAgent: createActiveAgentSchema(config),
      messages: channel.messages(),
    }),
    ...(context && { context }),
    ...(input && { input }),
    ...(output && { output }),
    ...(inbox !== undefined && { inbox }),
    ...(middleware && { middleware }),
    private: [...new Set(graphs.flatMap((graph) => [...graph.private]))] as never[],
    interrupts: mergeInterrupts(`team "${name}"`, [
      ...graphs.map((graph) => ({ label: `agent "${graph.name}"`, interrupts: graph.interrupts })),
      ...teamMiddleware.map((each) => ({ label: `middleware "${each?.name}"`, interrupts: each?.interrupts })),
    ]) as Record<never, never>,
  });
  const nodes = members.flatMap((member) => createNodes(config, member));
  const edges = members.flatMap((member) => createEdges(config, member));
  const first = route([...config.members.keys()], (state: TeamConversation) => state.activeAgent);
  return definition
    .nodes(Object.fromEntries(nodes) as never)
    .edges({ [START]: first, ...Object.fromEntries(edges) } as never) as Graph;
}

function parseTeamConfig({ name, agents, start, inputTo = "active", maxHandoffs = 10 }: AnyTeamOptions): TeamConfig {
  const owner = `team "${name}"`;
  if (!Array.isArray(agents) || agents.length === 0)
    throw invalidOption({
      where: owner,
      option: "agents",
      expected: "a list of at least one agent",
      ...(Array.isArray(agents) ? { found: "an empty list" } : { got: agents }),
      fix: "Pass agents: [triage, billing, …]",
    });
  checkChoice(owner, { inputTo }, ["active", "start"]);
  checkCount(owner, { maxHandoffs });
  const members = new Map<string, Member>();
  for (const agent of agents as readonly TeamMember[]) {
    const member = parseMember(owner, agent);
    if (members.has(member.name))
      throw invalidOption({
        where: owner,
        option: "agents",
        expected: "a list of agents with different names",
        found: `two agents named "${member.name}"`,
        fix: "Rename one of the agents",
      });
    members.set(member.name, member);
  }
  const [first] = members.keys();
  const startAgent = start ?? first ?? "";
  if (!members.has(startAgent)) throw createUnknownMemberError({ where: owner, option: "start" }, startAgent, members);
  for (const { name: from, tools } of members.values())
    for (const [tool, defined] of tools?.initialTools ?? []) {
      const to = getHandoff(defined)?.to;
      if (to !== undefined && !members.has(to))
        throw createUnknownMemberError({ where: `${owner}: handoff "${tool}" of agent "${from}"` }, to, members);
    }
  for (const member of members.keys())
    if (members.has(getToolNodeName(member)))
      throw invalidOption({
        where: owner,
        option: "agents",
        expected: "agent names that differ from tool node names",
        found: `the agents "${member}" and "${getToolNodeName(member)}"`,
        fix: "Rename one of the agents",
      });
  return { name, members, start: startAgent, inputTo, maxHandoffs };
}

function parseMember(owner: string, agent: TeamMember): Member {
  const model = agent?.nodes instanceof Map ? agent.nodes.get("model") : undefined;
  if (model === undefined || [...agent.nodes.keys()].some((node) => node !== "model" && node !== "tools"))
    throw invalidOption({
      where: owner,
      option: "agents",
      expected: "a list of agents",
      ...(model === undefined ? { got: agent } : { found: `the graph "${agent.name}"` }),
      fix: "Use agents created with createAgent; add any other graph to an agent as a tool",
    });
  return { name: agent.name, graph: agent, model, tools: agent.nodes.get("tools")?.tools as Member["tools"] };
}

/** Creates the error of a name without an agent in the team. */
function createUnknownMemberError(
  place: { readonly where: string; readonly option?: string },
  name: string,
  members: ReadonlyMap<string, Member>,
): StatewrightError {
  return invalidOption({
    ...place,
    expected: "the name of an agent of the team",
    got: name,
    fix: `Use one of ${[...members.keys()].map((each) => `"${each}"`).join(", ")}`,
  });
}

/** Returns the name of an agent's tool node. */
function getToolNodeName(agent: string): string {
  return `${agent}_tools`;
}

// Active agent.

function createActiveAgentSchema({ members, start }: TeamConfig): Schema<string | undefined, string> {
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value = start) =>
        typeof value === "string" && members.has(value)
          ? { value }
          : { issues: [{ message: `expected one of ${[...members.keys()].join(", ")}` }] },
    },
  };
}

function createNodes(config: TeamConfig, member: Member): readonly (readonly [string, unknown])[] {
  const { name, graph, model, tools } = member;
  const view = createView(config, member);
  const hooks = view === undefined ? graph.middleware : [...graph.middleware, createViewMiddleware(view)];
  const modelNode = { ...model.policy, [nodeKind]: model.logic, run: wrapModelNode(hooks, model.body) };
  if (tools === undefined) return [[name, modelNode]];
  const toolMiddleware = tools.middleware as readonly Middleware[];
  const allMiddleware = [
    createHandoffGuard(config, member),
    ...graph.middleware.filter((each) => !toolMiddleware.includes(each)),
    ...toolMiddleware,
  ];
  return [
    [name, modelNode],
    [getToolNodeName(name), { ...tools, middleware: allMiddleware }],
  ];
}

function createEdges({ members }: TeamConfig, { name, graph, tools }: Member): readonly (readonly [string, unknown])[] {
  const targets: Readonly<Record<string, string>> = { model: name, tools: getToolNodeName(name), [END]: END };
  const createChooser = (source: string) => {
    const edge = graph.edges.get(source);
    if (edge?.kind !== "route")
      throw invalidOption({
        where: `agent "${name}"`,
        expected: `a route after the node "${source}"`,
        found: edge === undefined ? "no edge" : `an edge of kind "${edge.kind}"`,
        fix: "Use an agent created with createAgent",
      });
    return (state: TeamConversation, context: unknown): string =>
      targets[String(edge.choose(state as never, context as never))] ?? END;
  };
  const chooseAfterModel = createChooser("model");
  if (tools === undefined) return [[name, route([name, END], chooseAfterModel)]];
  const chooseAfterTools = createChooser("tools");
  return [
    [name, route([getToolNodeName(name), name, END], chooseAfterModel)],
    [
      getToolNodeName(name),
      route([...members.keys(), END], (state: TeamConversation, context) =>
        state.activeAgent === name ? chooseAfterTools(state, context) : state.activeAgent,
      ),
    ],
  ];
}
