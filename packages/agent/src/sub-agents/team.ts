/** A team: agents that share one conversation and pass it to each other. One graph, with a model node and a tool node for each. */
import {
  checkOptions,
  defineGraph,
  defineState,
  END,
  type Graph,
  type GraphDefinition,
  type GraphTypes,
  type Middleware,
  messages,
  optionNames,
  route,
  type Schema,
  START,
  type StateTypes,
  StatewrightError,
  type Store,
} from "@statewright/core";
import { checkCount, checkWord } from "../agent/check-option.ts";
import { type Agent, talking } from "../agent/create-agent.ts";
import { questionsOf } from "../agent/merge-interrupts.ts";
import { handoffOf } from "./handoff.ts";
import { handingOver, type Member, showing, type TeamRules, type TeamTalk, viewOf, within } from "./team-config.ts";
import { channelsOf, contextOf, inputOf, outputOf } from "./team-parts.ts";

/** An agent that may be one of a team: what `createAgent` gives. */
export type TeamMember = GraphDefinition & { readonly types?: Pick<GraphTypes, "state" | "context" | "given"> };

/** What `team` takes. */
export interface TeamOptions<Members extends readonly TeamMember[]> {
  readonly name: string;
  /** Count up when a change of the team must not be taken for the old one. Default 1. */
  readonly version?: number;
  /** Those that have `handoff` tools pass the conversation to those that the tools name. */
  readonly agents: Members;
  /** The name of the agent that a conversation begins with. Default: the first. */
  readonly start?: NoInfer<Members[number]["name"]>;
  /** Who hears the next input of a thread: the agent that the conversation is with (`active`, the default), or that of the start. */
  readonly inputTo?: "active" | "start";
  /** How often the conversation may be passed on between two words of people; after that the model reads that it may not. Default 10. */
  readonly maxHandoffs?: number;
  /** Middleware around every tool call and model call of all agents, outside their own. */
  readonly middleware?: readonly Middleware[];
  /** Where its threads are kept; runs may give another. */
  readonly store?: Store;
  /** How many of the messages that wait for a run are taken in at a time. Default `all`. */
  readonly inbox?: "one" | "all";
}

/** The state of a team, beside the conversation and the channels of its agents. */
export interface TeamState extends StateTypes {
  /** Who the conversation is with. */
  readonly state: { readonly activeAgent: string };
  readonly update: { readonly activeAgent?: string };
  readonly input: { readonly activeAgent?: string | undefined };
}

type GivenOf<Members> = Members extends readonly (infer Member)[]
  ? AllOf<Member extends { readonly types?: infer Types } ? NonNullable<Types> : never>
  : unknown;
type AllOf<Types> = (Types extends { readonly given: infer Given } ? (given: Given) => void : never) extends (
  given: infer All,
) => void
  ? All
  : unknown;

/** A team: it is run, resumed and spoken to like an agent, and is a graph like one. */
export type Team<Given = unknown> = Omit<Agent<TeamState, unknown, Given>, "setTools">;

/**
 * Make a team. The whole conversation is one list of messages: each hand-off is a call that is answered, and the next request
 * is the other agent's. Events name the agent as their node; `state.activeAgent` says who it is with. Throws `invalid_option`
 * for agents that are none, two of one name, and hand-offs to nobody of the team.
 */
export function team<const Members extends readonly TeamMember[]>(
  options: TeamOptions<Members>,
): Team<GivenOf<Members>> {
  checkOptions("team", options, names);
  const { name, store } = options;
  const whole = talking(teamGraph(options as AnyTeamOptions), { name, store, tools: undefined });
  return whole as Team<GivenOf<Members>>;
}

type AnyTeamOptions = Omit<TeamOptions<readonly TeamMember[]>, "start"> & { readonly start?: string };

const names = optionNames<TeamOptions<readonly TeamMember[]>>({
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

function teamGraph(options: AnyTeamOptions): Graph {
  const { name, version = 1, inbox, middleware } = options;
  const rules = rulesOf(options);
  const members = [...rules.members.values()];
  const graphs = members.map(({ graph }) => graph);
  const around = middleware ?? [];
  const context = contextOf(graphs);
  const input = inputOf(rules, graphs);
  const output = outputOf(rules);
  const start = defineGraph({
    name,
    version,
    state: defineState({
      ...(channelsOf(name, [...graphs.map(({ state }) => state), ...around]) as Record<never, never>),
      activeAgent: activeAgent(rules),
      messages: messages(),
    }),
    ...(context && { context }),
    ...(input && { input }),
    ...(output && { output }),
    ...(inbox !== undefined && { inbox }),
    ...(middleware && { middleware }),
    private: [...new Set(graphs.flatMap((graph) => [...graph.private]))] as never[],
    interrupts: questionsOf(`the team "${name}"`, [
      ...graphs.map((graph) => ({ who: `the agent "${graph.name}"`, interrupts: graph.interrupts })),
      ...around.map((each) => ({ who: `the middleware "${each?.name}"`, interrupts: each?.interrupts })),
    ]) as Record<never, never>,
  });
  const nodes = members.flatMap((member) => nodesOf(rules, member));
  const edges = members.flatMap((member) => edgesOf(rules, member));
  const first = route([...rules.members.keys()], (state: TeamTalk) => state.activeAgent);
  return start
    .nodes(Object.fromEntries(nodes) as never)
    .edges({ [START]: first, ...Object.fromEntries(edges) } as never) as Graph;
}

function rulesOf({ name, agents, start, inputTo = "active", maxHandoffs = 10 }: AnyTeamOptions): TeamRules {
  const owner = `the team "${name}"`;
  if (!Array.isArray(agents) || agents.length === 0)
    throw unfit(`${owner} has no agents`, "Give agents: [triage, billing, …]");
  checkWord(owner, { inputTo }, ["active", "start"]);
  checkCount(owner, { maxHandoffs });
  const members = new Map<string, Member>();
  for (const agent of agents as readonly TeamMember[]) {
    const member = memberOf(owner, agent);
    if (members.has(member.name)) throw unfit(`${owner} has two agents named "${member.name}"`, "Rename one of them");
    members.set(member.name, member);
  }
  const [first] = members.keys();
  const begins = start ?? first ?? "";
  if (!members.has(begins)) throw unknownMember(owner, `begins with "${begins}"`, members);
  for (const { name: from, tools } of members.values())
    for (const [tool, defined] of tools?.defined ?? []) {
      const to = handoffOf(defined)?.to;
      if (to !== undefined && !members.has(to))
        throw unknownMember(owner, `would be handed over to "${to}" by "${tool}" of "${from}"`, members);
    }
  for (const member of members.keys())
    if (members.has(toolsOf(member)))
      throw unfit(`${owner} has agents named "${member}" and "${toolsOf(member)}"`, "Rename one of them");
  return { name, members, start: begins, inputTo, maxHandoffs };
}

function memberOf(owner: string, agent: TeamMember): Member {
  const model = agent?.nodes instanceof Map ? agent.nodes.get("model") : undefined;
  if (model === undefined || [...agent.nodes.keys()].some((node) => node !== "model" && node !== "tools"))
    throw unfit(
      `${owner} has an agent that is none`,
      "Give what createAgent gives; put any other graph into one as a tool",
    );
  return { name: agent.name, graph: agent, model, tools: agent.nodes.get("tools")?.tools as Member["tools"] };
}

function unfit(what: string, next: string): StatewrightError {
  return new StatewrightError("invalid_option", { what, next });
}

function unknownMember(owner: string, said: string, members: ReadonlyMap<string, Member>): StatewrightError {
  return unfit(
    `${owner} ${said}, which is none of its agents`,
    `Its agents are ${[...members.keys()].map((each) => `"${each}"`).join(", ")}`,
  );
}

/** The name of an agent's tool node. */
function toolsOf(agent: string): string {
  return `${agent}_tools`;
}

// Who speaks.

function activeAgent({ members, start }: TeamRules): Schema<string | undefined, string> {
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

function nodesOf(rules: TeamRules, member: Member): readonly (readonly [string, unknown])[] {
  const { name, graph, model, tools } = member;
  const view = viewOf(rules, member);
  const around = view === undefined ? graph.middleware : [...graph.middleware, showing(view)];
  const ask = { ...model.policy, run: within(around, model.body) };
  if (tools === undefined) return [[name, ask]];
  const own = tools.middleware as readonly Middleware[];
  const all = [handingOver(rules, member), ...graph.middleware.filter((each) => !own.includes(each)), ...own];
  return [
    [name, ask],
    [toolsOf(name), { ...tools, middleware: all }],
  ];
}

function edgesOf({ members }: TeamRules, { name, graph, tools }: Member): readonly (readonly [string, unknown])[] {
  const places: Readonly<Record<string, string>> = { model: name, tools: toolsOf(name), [END]: END };
  const next = (source: string) => {
    const edge = graph.edges.get(source);
    if (edge?.kind !== "route")
      throw unfit(`the agent "${name}" has no route from "${source}"`, "Give what createAgent gives");
    return (state: TeamTalk): string => places[String(edge.choose(state as never))] ?? END;
  };
  const after = next("model");
  if (tools === undefined) return [[name, route([name, END], after)]];
  const afterTools = next("tools");
  return [
    [name, route([toolsOf(name), name, END], after)],
    [
      toolsOf(name),
      route([...members.keys(), END], (state: TeamTalk) =>
        state.activeAgent === name ? afterTools(state) : state.activeAgent,
      ),
    ],
  ];
}
