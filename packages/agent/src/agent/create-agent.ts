/** `createAgent`: a model and its tools as an ordinary graph, with methods for user messages. */
import {
  type AnyModel,
  cancelRun,
  type Graph,
  type Message,
  type Middleware,
  type OutputSchema,
  type ResumeOptions,
  type RunHandle,
  type RunOptions,
  type RunStatus,
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
} from "@statewright/core";
import {
  type ActiveRunFilter,
  checkId,
  checkKnownModels,
  invalidOption,
  listActiveRuns,
  parseAnswerFormat,
} from "@statewright/core/adapter";
import { createAgentGraph } from "./agent-graph.ts";
import { type AgentInput, toMessages } from "./agent-input.ts";
import type { AgentOptions, AnyAgentOptions } from "./agent-options.ts";
import {
  type AgentListener,
  type AgentRun,
  type AgentStream,
  createActiveRuns,
  createAgentRun,
  toAgentStream,
} from "./agent-run.ts";
import type { AgentState, AgentTypes, Conversation, NoState, OutputOf } from "./agent-state.ts";
import { checkAgent, checkConfirmTools } from "./check-agent.ts";
import type { CheckedModel, CheckedTools } from "./checked-agent.ts";
import { type ToolChoiceNames, toToolRegistry } from "./model-node.ts";
import { normalizeModelOptions } from "./normalize-model-options.ts";

/** Options of `agent.run`: the user input, initial values of the agent's channels, and its context. */
export type AgentRunOptions<Types extends StateTypes, Context, ContextInput> = Omit<
  RunOptions<AgentTypes<Types, Context, ContextInput>>,
  "input"
> & {
  /** Text of a user message, or messages. */
  readonly input: AgentInput;
} & (Record<never, never> extends Types["input"]
    ? { readonly state?: Types["input"] }
    : { readonly state: Types["input"] });

/** Options of `agent.resume`. */
export type AgentResumeOptions<Types extends StateTypes, Context, ContextInput, Keys extends string = string> = Omit<
  ResumeOptions<AgentTypes<Types, Context, ContextInput>>,
  "store" | "answers"
> & {
  /** Store of the thread. Default: the store of the agent. */
  readonly store?: Store;
  /**
   * Answers by interrupt key or id. Interrupts of middleware are known only at run time: an unknown key fails then.
   */
  readonly answers?: NonNullable<ResumeOptions<AgentTypes<Types, Context, ContextInput>>["answers"]> & {
    readonly [Key in Keys]?: unknown;
  };
};

/** Options of `agent.steer` and `agent.followUp`. */
export type AgentSteerOptions = Omit<SteerOptions, "store" | "input" | "kind"> & {
  /** Text of a user message, or messages. */
  readonly input: AgentInput;
  /** Store of the thread. Default: the store of the agent. */
  readonly store?: Store;
};

/** Options of `agent.abort`. */
export interface AgentAbortOptions {
  /** Thread whose run is cancelled, in this process or another. Default: all active runs of the agent in this process. */
  readonly thread?: string;
  /** Reason of the cancellation, in the result and the events of the run. Default: "the run was cancelled". */
  readonly reason?: string;
  /** Store of the thread. Default: the store of the agent. */
  readonly store?: Store;
}

/** Agent: a graph of a model node and a tool node. */
export interface Agent<
  Types extends StateTypes = NoState,
  Context = unknown,
  ContextInput = unknown,
  Output = never,
  Tools extends string = string,
  Keys extends string = string,
> extends Graph<AgentTypes<Types, Context, ContextInput, Output, Tools>> {
  /**
   * Converts user input to the input of the graph. Equal texts give equal inputs, so a repeated `submit` with the same
   * key is the same run. Throws `invalid_input` for empty input.
   */
  readonly toInput: (input: AgentInput) => { readonly messages: readonly Message[] };
  /**
   * Runs the agent on a thread; a finished thread continues with the new messages. Throws `invalid_input` for empty
   * input.
   */
  run(
    options: AgentRunOptions<Types, Context, ContextInput>,
  ): AgentRun<AgentState<Types>["state"], OutputOf<Types, Output>>;
  /** As {@link run}, with an async iterator over all events. */
  stream(
    options: AgentRunOptions<Types, Context, ContextInput>,
  ): AgentStream<AgentState<Types>["state"], OutputOf<Types, Output>>;
  /** Continues a thread after a crash or a failure, or with answers to its interrupts. */
  resume(
    options: AgentResumeOptions<Types, Context, ContextInput, Keys>,
  ): AgentRun<AgentState<Types>["state"], OutputOf<Types, Output>>;
  /**
   * Cancels active runs of the agent in this process, also runs that an engine started: all runs, or the runs of one
   * thread. The signals fire before `abort` returns. Without an active run in this process, the run of `thread` is
   * cancelled by a request, as `cancelRun` does it: at work in another process, waiting, paused or crashed. Resolves to
   * the ids of the cancelled runs. With `thread`, rejects with `missing_store` when no run is active here and no store
   * is known.
   */
  abort(options?: AgentAbortOptions): Promise<readonly string[]>;
  /**
   * Sends a message to the run of a thread; the message is saved when the promise resolves. Without an active run the
   * next run receives the message.
   */
  steer(options: AgentSteerOptions): Promise<void>;
  /** As {@link steer}, but delivered only when the run would otherwise end. */
  followUp(options: AgentSteerOptions): Promise<void>;
  /**
   * Replaces all tools of the agent, effective with the next model request. Tool calls in progress continue with the
   * old tools.
   */
  setTools(tools: readonly Tool<AgentState<Types>["state"], Context>[]): void;
  /**
   * Subscribes a listener to all events of runs started by these methods in this process; returns the unsubscribe
   * function. For runs of an engine use its `onRun`.
   */
  subscribe(listener: AgentListener): () => void;
}

/**
 * Keys of the answers that an agent accepts besides tool approvals: client tools, interrupts of sub-agents, and
 * interrupts of middleware.
 */
export type AnswerKeys<Tools, MiddlewareOption> = unknown extends MiddlewareOption
  ? ToolNamesIn<Tools> | `${string}.${string}`
  : string;

/**
 * Creates an agent: a graph of a model node and a tool node, with methods for user messages. Throws the errors of
 * `defineGraph`, `toolNode` and `toolRegistry`.
 */
export function createAgent<
  Types extends StateTypes = NoState,
  Context = unknown,
  ContextInput = unknown,
  Output = never,
  const Tools = unknown,
  ProviderTools = unknown,
  MiddlewareOption = unknown,
  ModelOption extends AnyModel | readonly AnyModel[] = AnyModel,
>(
  options: Omit<
    AgentOptions<
      Types,
      Context,
      ContextInput,
      Output,
      NoInfer<ToolNamesIn<Tools>>,
      NoInfer<ToolChoiceNames<Tools, ProviderTools>>
    >,
    "tools" | "model"
  > & {
    readonly model: CheckedModel<ModelOption, NoInfer<Tools>>;
    readonly tools?: CheckedTools<AgentState<Types>["state"], NoInfer<Context>, Tools>;
    readonly providerTools?: ProviderTools;
    readonly middleware?: MiddlewareOption;
  },
): Agent<Types, Context, ContextInput, Output, ToolNamesIn<Tools>, AnswerKeys<Tools, MiddlewareOption>> {
  checkAgent(options);
  checkId("agent name", options.name);
  const untyped = normalizeModelOptions(`agent "${options.name}"`, options as AnyAgentOptions);
  checkKnownModels(`agent "${options.name}"`, untyped);
  const tools = toToolRegistry(untyped.tools);
  const { name, store } = options;
  const output = untyped.output === undefined ? undefined : parseAnswerFormat(`agent "${name}"`, untyped.output);
  const graph = createAgentGraph(untyped, tools, output);
  const middleware = (untyped.middleware ?? []) as readonly Middleware[];
  const check = (registry: ToolRegistry<Conversation>): void => checkConfirmTools(name, registry.tools(), middleware);
  check(tools);
  const agent = addAgentMethods(graph, { name, store, tools: { registry: tools, check }, output: output?.schema });
  return agent as Agent<Types, Context, ContextInput, Output, ToolNamesIn<Tools>, AnswerKeys<Tools, MiddlewareOption>>;
}

/** Options of the agent methods of a graph; a team has no tools of its own, so its `setTools` throws. */
export interface AgentMethodOptions {
  readonly name: string;
  readonly store: Store | undefined;
  readonly tools: ReplaceableTools | undefined;
  readonly output?: OutputSchema | undefined;
}

/** Replaceable tools; `check` throws for tools that the agent must not have. */
interface ReplaceableTools {
  readonly registry: ToolRegistry<Conversation>;
  readonly check: (tools: ToolRegistry<Conversation>) => void;
}

/** Adds the methods of an agent to a graph whose state is a conversation. */
export function addAgentMethods(graph: Graph, { name, store, tools, output }: AgentMethodOptions): object {
  const runs = createActiveRuns();
  const trackRun = (handle: RunHandle<object>): AgentRun<Conversation> => {
    runs.add(handle);
    return createAgentRun(handle as RunHandle<Conversation>, output);
  };
  type Run = AgentRunOptions<StateTypes, unknown, unknown>;
  const start = (options: Run): AgentRun<Conversation> => {
    if (options === undefined || !("input" in options)) throw createMissingInputError(name, options);
    const { input, state, ...rest } = options;
    const graphInput = { ...state, messages: toMessages(input) };
    return trackRun(run(graph, { ...(store && { store }), ...rest, input: graphInput }));
  };
  /** An engine runs the agent itself, which is another object than its graph. */
  const listRuns = (filter: ActiveRunFilter): readonly RunHandle<unknown>[] =>
    dedupeRuns([...runs.list(filter.thread), ...listActiveRuns(graph, filter), ...listActiveRuns(complete, filter)]);
  const agent = {
    toInput: (input: AgentInput) => ({ messages: toMessages(input) }),
    run: start,
    stream: (options: Run) => toAgentStream(start(options)),
    resume: ({ store: runStore = store, answers, ...rest }: AgentResumeOptions<StateTypes, unknown, unknown>) => {
      const resumeOptions = {
        ...rest,
        ...(answers !== undefined && { answers: answers as Readonly<Record<string, unknown>> }),
        store: runStore ?? throwMissingStore(name),
      };
      return trackRun(resume(graph, resumeOptions));
    },
    abort: (options: AgentAbortOptions = {}) => abortRuns({ graph, listRuns, store }, options),
    steer: (options: AgentSteerOptions) => sendMessage({ graph, listRuns, store }, "steer", options),
    followUp: (options: AgentSteerOptions) => sendMessage({ graph, listRuns, store }, "followUp", options),
    setTools: (newTools: readonly Tool<never, never>[]) => {
      if (tools === undefined) throw createMissingToolsError(name);
      const untypedTools = newTools as readonly Tool<Conversation>[];
      tools.check(toolRegistry(untypedTools));
      tools.registry.replaceAll(untypedTools);
    },
    subscribe: runs.subscribe,
  };
  const complete: Graph = Object.freeze(
    Object.defineProperties(agent, Object.getOwnPropertyDescriptors(graph)),
  ) as typeof agent & Graph;
  return complete;
}

/** Removes repeated runs: the handle of the agent wraps the handle of the graph. */
function dedupeRuns(runs: readonly RunHandle<unknown>[]): readonly RunHandle<unknown>[] {
  return [...new Map(runs.map((run) => [`${run.thread} ${run.id}`, run])).values()];
}

/** Agent whose runs are addressed by thread: graph, active runs in this process, and default store. */
interface ThreadTarget {
  readonly graph: Graph;
  readonly listRuns: (filter: ActiveRunFilter) => readonly RunHandle<unknown>[];
  readonly store: Store | undefined;
}

/** Statuses of runs that `abort` cancels by a request, because they are not active in this process. */
const abortableElsewhere: readonly RunStatus[] = ["running", "waiting", "paused", "parked", "crashed"];

/**
 * Cancels the active runs of this process; for a thread without one, requests the cancel of its unfinished run from the
 * process that runs it, or ends a run at rest.
 */
async function abortRuns(
  { graph, listRuns, store: agentStore }: ThreadTarget,
  { thread, reason, store = agentStore }: AgentAbortOptions,
): Promise<readonly string[]> {
  const active = listRuns({ thread, store });
  for (const run of active) run.cancel(reason);
  // A resume that is cancelled before it has its thread drives no run.
  const ids = await Promise.all(active.map(({ id, run }) => run.catch(() => id)));
  if (thread === undefined || active.length > 0) return ids;
  const shared = store ?? throwMissingStore(graph.name);
  const [other] = await shared.runs({ thread, status: abortableElsewhere });
  if (other === undefined) return ids;
  const { run, status } = await cancelRun(shared, { thread, run: other.id, reason });
  return status === "unchanged" ? ids : [run];
}

/**
 * Sends a message to the active run of the thread in this process, else through the store to the process that owns
 * the thread.
 */
async function sendMessage(
  { graph, listRuns, store: agentStore }: ThreadTarget,
  kind: "steer" | "followUp",
  { input, store = agentStore, ...rest }: AgentSteerOptions,
): Promise<void> {
  const messages = toMessages(input);
  const [activeRun] = rest.branch === undefined ? listRuns({ thread: rest.thread, store }) : [];
  if (activeRun !== undefined) return activeRun[kind](messages);
  return steer(graph, { ...rest, input: messages, kind, store: store ?? throwMissingStore(graph.name) });
}

function throwMissingStore(name: string): never {
  throw new StatewrightError("missing_store", {
    what: `agent "${name}": the thread has no active run in this process, and no store was given`,
    next: "Pass the store that holds the thread to createAgent or to the call",
  });
}

/** Creates the error of a missing `input`; suggests a rename for option names of other frameworks. */
function createMissingInputError(name: string, options: object | undefined): StatewrightError {
  const foreignName = ["prompt", "messages", "message"].find(
    (key) => options !== undefined && Object.hasOwn(options, key),
  );
  return new StatewrightError("invalid_input", {
    what: `agent "${name}": run expected an input, got undefined`,
    next:
      foreignName === undefined
        ? "Pass run({ input }): a text, { text, files }, or a list of messages"
        : `Rename "${foreignName}" to input: a text, { text, files }, or a list of messages`,
  });
}

function createMissingToolsError(name: string): StatewrightError {
  return invalidOption({
    where: `"${name}": setTools`,
    expected: "an agent",
    found: "a team",
    fix: "Use setTools of one of its members",
  });
}
