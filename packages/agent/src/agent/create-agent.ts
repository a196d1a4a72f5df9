/** `createAgent`: a model and its tools as an ordinary graph, with methods that take a person's words. */
import {
  type Graph,
  type Message,
  type Middleware,
  type Model,
  type OutputSchema,
  type ResumeOptions,
  type RunHandle,
  type RunOptions,
  resume,
  run,
  type StateTypes,
  StatewrightError,
  type SteerOptions,
  type Store,
  steer,
  type Tool,
  type ToolNamesIn,
  type ToolRegistry,
  toolRegistry,
  type World,
} from "@statewright/core";
import { agentOutput } from "../output/agent-output.ts";
import { type AgentListener, type RunsAtWork, runsAtWork } from "./active-runs.ts";
import { agentGraph } from "./agent-graph.ts";
import { type AgentInput, toMessages } from "./agent-input.ts";
import type { AgentOptions, AnyAgentOptions } from "./agent-options.ts";
import { type AgentRun, type AgentStream, agentRun, agentStream } from "./agent-run.ts";
import type { AgentState, AgentTypes, Conversation, NoState, OutputOf } from "./agent-state.ts";
import { checkAgent, checkConfirmed } from "./check-agent.ts";
import { type ChoicesOf, registryOf } from "./model-node.ts";

/** What `agent.run` takes: the words, the agent's own channels beside them, and the context it declares. */
export type AgentRunOptions<Types extends StateTypes, Context, Given> = Omit<
  RunOptions<AgentTypes<Types, Context, Given>>,
  "input"
> & {
  readonly input: AgentInput;
} & (Record<never, never> extends Types["input"]
    ? { readonly state?: Types["input"] }
    : { readonly state: Types["input"] });

/** What `agent.resume` takes. */
export type AgentResumeOptions<Types extends StateTypes, Context, Given, Keys extends string = string> = Omit<
  ResumeOptions<AgentTypes<Types, Context, Given>>,
  "store" | "answers"
> & {
  readonly store?: Store;
  /** By interrupt key or id. What middleware asks is known only when the agent runs: a key that nothing asks is refused then. */
  readonly answers?: NonNullable<ResumeOptions<AgentTypes<Types, Context, Given>>["answers"]> & {
    readonly [Key in Keys]?: unknown;
  };
};

/** What `agent.steer` and `agent.followUp` take. */
export type AgentSpeakOptions = Omit<SteerOptions, "store" | "input" | "kind"> & {
  readonly input: AgentInput;
  readonly store?: Store;
};

/** Which runs `agent.abort` cancels. */
export interface AgentAbortOptions {
  /** All that are at work when absent. */
  readonly thread?: string;
  readonly reason?: string;
}

/** An agent: a graph of a model node and a tool node. */
export interface Agent<
  Types extends StateTypes = NoState,
  Context = unknown,
  Given = unknown,
  Output = never,
  Tools extends string = string,
  Keys extends string = string,
> extends Graph<AgentTypes<Types, Context, Given, Output, Tools>> {
  /** The graph's input for a person's words. */
  readonly inputOf: (input: AgentInput, world?: World) => { readonly messages: readonly Message[] };
  /** Run the agent on a thread; a thread that has finished before goes on with the new words. Throws `invalid_input` for words that say nothing. */
  run(options: AgentRunOptions<Types, Context, Given>): AgentRun<AgentState<Types>["state"], OutputOf<Types, Output>>;
  /** {@link run}, read event by event. */
  stream(
    options: AgentRunOptions<Types, Context, Given>,
  ): AgentStream<AgentState<Types>["state"], OutputOf<Types, Output>>;
  /** Go on with a thread after a crash, a failure, or with the answers of people. */
  resume(
    options: AgentResumeOptions<Types, Context, Given, Keys>,
  ): AgentRun<AgentState<Types>["state"], OutputOf<Types, Output>>;
  /** Cancel the agent's runs that this process has at work, all or those of one thread. */
  abort(options?: AgentAbortOptions): void;
  /** Say something to the run of a thread while it works; kept when the promise resolves. A thread without a run at work keeps it for its next one. */
  steer(options: AgentSpeakOptions): Promise<void>;
  /** As {@link steer}, heard only when the run would end otherwise. */
  followUp(options: AgentSpeakOptions): Promise<void>;
  /** Put these tools in the place of all others, from the next request to the model on: calls at work go on as they were. */
  setTools(tools: readonly Tool<AgentState<Types>["state"], Context>[]): void;
  /** Call `listener` with each event of the runs that these methods begin in this process until the returned function is called. An engine tells of its runs by `onRun`. */
  subscribe(listener: AgentListener): () => void;
}

/** What an agent may be answered by key, beside questions about calls: its tools without a body, what is asked inside, and what its middleware asks. */
export type KeysOf<Tools, Around> = unknown extends Around ? ToolNamesIn<Tools> | `${string}.${string}` : string;

/** Create an agent. Throws what `defineGraph`, `toolNode` and `toolRegistry` throw. */
export function createAgent<
  Types extends StateTypes = NoState,
  Context = unknown,
  Given = unknown,
  Output = never,
  Tools = unknown,
  Provided = unknown,
  Around = unknown,
>(
  options: AgentOptions<
    Types,
    Context,
    Given,
    Model,
    Output,
    NoInfer<ToolNamesIn<Tools>>,
    NoInfer<ChoicesOf<Tools, Provided>>
  > & { readonly tools?: Tools; readonly providerTools?: Provided; readonly middleware?: Around },
): Agent<Types, Context, Given, Output, ToolNamesIn<Tools>, KeysOf<Tools, Around>> {
  checkAgent(options);
  const untyped = options as AnyAgentOptions;
  const tools = registryOf(untyped.tools);
  const { name, store } = options;
  const output = untyped.output === undefined ? undefined : agentOutput(`the agent "${name}"`, untyped.output);
  const graph = agentGraph(untyped, tools, output);
  const middleware = (untyped.middleware ?? []) as readonly Middleware[];
  const check = (all: ToolRegistry<Conversation>): void => checkConfirmed(name, all.tools(), middleware);
  check(tools);
  const changeable = untyped.tools === undefined ? undefined : { registry: tools, check };
  const whole = talking(graph, { name, store, tools: changeable, output: output?.schema });
  return whole as Agent<Types, Context, Given, Output, ToolNamesIn<Tools>, KeysOf<Tools, Around>>;
}

/** What a graph needs besides to be spoken to; without `tools` they cannot be changed. */
export interface TalkingOptions {
  readonly name: string;
  readonly store: Store | undefined;
  readonly tools: ChangeableTools | undefined;
  readonly output?: OutputSchema | undefined;
}

/** Tools that may be changed; `check` throws for those that the agent must not have. */
interface ChangeableTools {
  readonly registry: ToolRegistry<Conversation>;
  readonly check: (tools: ToolRegistry<Conversation>) => void;
}

/** A graph whose state is a conversation, with the methods of an agent. */
export function talking(graph: Graph, { name, store, tools, output }: TalkingOptions): object {
  const runs = runsAtWork();
  const atWork = (handle: RunHandle<object>, world: World | undefined): AgentRun<Conversation> => {
    runs.begun(handle);
    return agentRun(handle as RunHandle<Conversation>, world, output);
  };
  type Run = AgentRunOptions<StateTypes, unknown, unknown>;
  const start = (options: Run): AgentRun<Conversation> => {
    if (options === undefined || !("input" in options)) throw noInput(name, options);
    const { input, state, ...rest } = options;
    const given = { ...state, messages: toMessages(input, rest.world) };
    return atWork(run(graph, { ...(store && { store }), ...rest, input: given }), rest.world);
  };
  const agent = {
    inputOf: (input: AgentInput, world?: World) => ({ messages: toMessages(input, world) }),
    run: start,
    stream: (given: Run) => agentStream(start(given)),
    resume: ({ store: given = store, answers, ...rest }: AgentResumeOptions<StateTypes, unknown, unknown>) => {
      const all = {
        ...rest,
        ...(answers !== undefined && { answers: answers as Readonly<Record<string, unknown>> }),
        store: given ?? noStore(name),
      };
      return atWork(resume(graph, all), rest.world);
    },
    abort: ({ thread, reason }: AgentAbortOptions = {}) => {
      for (const each of runs.on(thread)) each.cancel(reason);
    },
    steer: (said: AgentSpeakOptions) => speak(graph, runs, store, "steer", said),
    followUp: (said: AgentSpeakOptions) => speak(graph, runs, store, "followUp", said),
    setTools: (all: readonly Tool<never, never>[]) => {
      if (tools === undefined) throw noTools(name);
      const given = all as readonly Tool<Conversation>[];
      tools.check(toolRegistry(given, { names: "provider-safe" }));
      tools.registry.replaceAll(given);
    },
    subscribe: runs.subscribe,
  };
  return Object.freeze(Object.defineProperties(agent, Object.getOwnPropertyDescriptors(graph)));
}

/** To the run that this process has at work on the thread, else to whoever has the thread. */
async function speak(
  graph: Graph,
  runs: RunsAtWork,
  own: Store | undefined,
  kind: "steer" | "followUp",
  { input, store = own, ...rest }: AgentSpeakOptions,
): Promise<void> {
  const messages = toMessages(input, rest.world);
  const [here] = rest.branch === undefined ? runs.on(rest.thread) : [];
  if (here !== undefined) return here[kind](messages);
  return steer(graph, { ...rest, input: messages, kind, store: store ?? noStore(graph.name) });
}

function noStore(name: string): never {
  throw new StatewrightError("missing_store", {
    what: `the agent "${name}" was asked about a thread that no run here has, without a store`,
    next: "Give the agent or the call the store that holds the thread",
  });
}

/** Whoever comes from elsewhere has said it under another name. */
function noInput(name: string, options: object | undefined): StatewrightError {
  const said = ["prompt", "messages", "message"].find((key) => options !== undefined && Object.hasOwn(options, key));
  return new StatewrightError("invalid_input", {
    what: `the agent "${name}" was run without an input`,
    next:
      said === undefined
        ? "Give run({ input }): a text, { text, files }, or a list of messages"
        : `Write input in place of "${said}": a text, { text, files }, or a list of messages`,
  });
}

function noTools(name: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the agent "${name}" was made without tools, and has no node that would run them`,
    next: "Give createAgent tools, if only an empty list: tools: []",
  });
}
