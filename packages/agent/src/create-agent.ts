/** `createAgent`: a model and its tools as an ordinary graph, with `run` and `resume` that take a person's words. */
import {
  approval,
  type ContextDefinition,
  callsOf,
  checkOptions,
  defineGraph,
  defineState,
  END,
  freshId,
  type Graph,
  isModel,
  type Message,
  type Middleware,
  type Model,
  type ModelRequest,
  messages,
  type NodeRuntime,
  optionNames,
  type ResumeOptions,
  type RetryPolicy,
  type RunHandle,
  type RunOptions,
  resume,
  route,
  run,
  START,
  type StateDefinition,
  type StateTypes,
  StatewrightError,
  type Store,
  systemWorld,
  type Tool,
  type ToolNodeOptions,
  type TypesOf,
  type TypesWith,
  toolNode,
  toolRegistry,
  type World,
} from "@statewright/core";

/** The state of an agent: the user's own and the conversation. */
export interface AgentState<Types extends StateTypes> extends StateTypes {
  readonly state: Types["state"] & { readonly messages: readonly Message[] };
  readonly update: Types["update"] & { readonly messages?: readonly Message[] };
  readonly input: Types["input"] & { readonly messages?: readonly Message[] | undefined };
}

/** The state of an agent that has none of its own. */
export interface NoState extends StateTypes {
  readonly state: Readonly<Record<never, never>>;
  readonly update: Readonly<Record<never, never>>;
  readonly input: Readonly<Record<never, never>>;
}

/** The types of an agent's graph. */
export type AgentTypes<Types extends StateTypes, Context, Given> = TypesWith<
  TypesOf<AgentState<Types>, Context, Given, { readonly approve: typeof approval }>,
  "model" | "tools"
>;

/** What `createAgent` takes. */
export interface AgentOptions<Types extends StateTypes, Context, Given, AnyModel = Model> {
  readonly name: string;
  /** Count up when a change of the agent must not be taken for the old one. Default 1. */
  readonly version?: number;
  readonly model: AnyModel;
  /** What the model is told before the conversation: a text, or a function of state and context. */
  readonly instructions?: string | ((state: AgentState<Types>["state"], context: NoInfer<Context>) => string);
  readonly tools?: readonly Tool<AgentState<Types>["state"], NoInfer<Context>>[];
  /** Channels of the agent's own, beside `messages`. */
  readonly state?: StateDefinition<Types>;
  readonly context?: ContextDefinition<Context, Given>;
  readonly middleware?: readonly Middleware<NoInfer<Context>, AgentState<Types>["state"]>[];
  /** Where its threads are kept; runs may give another. */
  readonly store?: Store;
  /** Settings of every request. */
  readonly settings?: Pick<
    ModelRequest,
    "toolChoice" | "temperature" | "maxOutputTokens" | "seed" | "headers" | "providerOptions"
  >;
  /** Tries a model call again when the provider says that this may help. Default: 3 attempts. */
  readonly retry?: RetryPolicy;
  /** How the calls of one message share time. Default `parallel`. */
  readonly strategy?: ToolNodeOptions<unknown, unknown>["strategy"];
  /** How many calls of one message may run at the same time. Default: no limit. */
  readonly maxToolConcurrency?: number;
}

/** What a person says to an agent: a text, or messages. */
export type AgentInput = string | readonly Message[];

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
export type AgentResumeOptions<Types extends StateTypes, Context, Given> = Omit<
  ResumeOptions<AgentTypes<Types, Context, Given>>,
  "store"
> & {
  readonly store?: Store;
};

/** An agent: a graph of a model node and a tool node. */
export interface Agent<Types extends StateTypes = NoState, Context = unknown, Given = unknown>
  extends Graph<AgentTypes<Types, Context, Given>> {
  /** The graph's input for a person's words. */
  readonly inputOf: (input: AgentInput, world?: World) => { readonly messages: readonly Message[] };
  /** Run the agent on a thread; a thread that has finished before goes on with the new words. */
  run(options: AgentRunOptions<Types, Context, Given>): RunHandle<AgentState<Types>["state"]>;
  /** Go on with a thread after a crash, a failure, or with the answers of people. */
  resume(options: AgentResumeOptions<Types, Context, Given>): RunHandle<AgentState<Types>["state"]>;
}

/** Create an agent. Throws what `defineGraph`, `toolNode` and `toolRegistry` throw. */
export function createAgent<Types extends StateTypes = NoState, Context = unknown, Given = unknown>(
  options: AgentOptions<Types, Context, Given>,
): Agent<Types, Context, Given> {
  checkAgent(options);
  const { store } = options;
  const graph = agentGraph(options);
  const agent = {
    inputOf: (input: AgentInput, world?: World) => ({ messages: toMessages(input, world) }),
    run: ({ input, state, ...rest }: AgentRunOptions<StateTypes, unknown, unknown>) =>
      run(graph, { ...(store && { store }), ...rest, input: { ...state, messages: toMessages(input, rest.world) } }),
    resume: ({ store: given = store, answers, ...rest }: AgentResumeOptions<StateTypes, unknown, unknown>) =>
      resume(graph, { ...rest, ...(answers && { answers: { ...answers } }), store: given ?? noStore(options.name) }),
  };
  return Object.freeze(Object.defineProperties(agent, Object.getOwnPropertyDescriptors(graph))) as Agent<
    Types,
    Context,
    Given
  >;
}

const agentOptions = optionNames<AgentOptions<StateTypes, unknown, unknown>>({
  name: true,
  version: true,
  model: true,
  instructions: true,
  tools: true,
  state: true,
  context: true,
  middleware: true,
  store: true,
  settings: true,
  retry: true,
  strategy: true,
  maxToolConcurrency: true,
});
const settingNames = optionNames<NonNullable<AgentOptions<StateTypes, unknown, unknown>["settings"]>>({
  toolChoice: true,
  temperature: true,
  maxOutputTokens: true,
  seed: true,
  headers: true,
  providerOptions: true,
});

/** Throws `invalid_option` for what no agent can be made of; graph, tools and middleware are checked where they are made. */
function checkAgent(options: unknown): void {
  checkOptions("createAgent", options, agentOptions);
  const { name, model, instructions, state, settings, store } = options as Readonly<Record<string, unknown>>;
  const owner = typeof name === "string" ? `the agent "${name}"` : "an agent";
  if (!isModel(model))
    throw unfit(`the model of ${owner}`, model, "a model, such as scriptedModel([…]) or one of a provider");
  if (instructions !== undefined && typeof instructions !== "string" && typeof instructions !== "function")
    throw unfit(`the instructions of ${owner}`, instructions, "a text, or a function of state and context");
  if (state !== undefined && !(typeof state === "object" && state !== null && "channels" in state))
    throw unfit(`the state of ${owner}`, state, "defineState({ name: schema, … })");
  if (store !== undefined && !(typeof store === "object" && store !== null && "claim" in store))
    throw unfit(`the store of ${owner}`, store, "memoryStore() or sqliteStore(path)");
  if (settings !== undefined) checkOptions(`the settings of ${owner}`, settings, settingNames);
}

function unfit(what: string, given: unknown, wanted: string): StatewrightError {
  const kind =
    typeof given === "string" ? JSON.stringify(given) : given === null ? "null" : `a value of the type ${typeof given}`;
  return new StatewrightError("invalid_option", { what: `${what} is ${kind}`, next: `Give ${wanted}` });
}

/** An agent's options without their types: what its graph is built from. */
type AnyAgentOptions = Pick<
  AgentOptions<StateTypes, unknown, unknown>,
  "name" | "version" | "model" | "settings" | "retry" | "strategy" | "maxToolConcurrency"
> & {
  readonly instructions?: string | ((state: never, context: never) => string);
  readonly tools?: readonly Tool<never, never>[];
  readonly state?: Pick<StateDefinition, "channels">;
  readonly context?: Pick<ContextDefinition, "schema">;
  readonly middleware?: readonly Middleware<never, never>[];
};

type Conversation = { readonly messages: readonly Message[] };

/** The graph of an agent: model → tools → model, until an answer calls none. */
function agentGraph(options: AnyAgentOptions): Graph {
  const { name, version = 1, strategy, maxToolConcurrency } = options;
  const context = options.context as ContextDefinition | undefined;
  const tools = (options.tools ?? []) as readonly Tool<Conversation>[];
  const middleware = (options.middleware ?? []) as readonly Middleware[];
  const start = defineGraph({
    name,
    version,
    state: defineState({ ...options.state?.channels, messages: messages() }),
    ...(context && { context }),
    interrupts: { approve: approval },
  });
  const model = { run: askModel(options, tools, middleware), retry: options.retry ?? { attempts: 3 } };
  const answerCalls = toolNode({
    tools,
    middleware,
    ...(strategy && { strategy }),
    ...(maxToolConcurrency !== undefined && { maxConcurrency: maxToolConcurrency }),
  });
  if (tools.length === 0) return start.nodes({ model }).edges({ [START]: "model", model: END });
  return start.nodes({ model, tools: answerCalls }).edges({
    [START]: "model",
    model: route(["tools", END], (state) => (callsTools(state.messages) ? "tools" : END)),
    tools: "model",
  });
}

function askModel(
  options: AnyAgentOptions,
  tools: readonly Tool<Conversation>[],
  middleware: readonly Middleware[],
): (state: Conversation, runtime: Pick<NodeRuntime, "context" | "model">) => Promise<{ messages: Message[] }> {
  const { model, instructions, settings } = options;
  const shown = toolRegistry(tools).forModel();
  return async (state, runtime) => {
    const told =
      typeof instructions === "function" ? instructions(state as never, runtime.context as never) : instructions;
    const request = { ...settings, instructions: told, messages: state.messages, tools: shown };
    return { messages: [await runtime.model({ model, request, middleware })] };
  };
}

/** Every call gets its answer from the tool node, also one that it refuses because the message was cut off. */
function callsTools(conversation: readonly Message[]): boolean {
  const last = conversation[conversation.length - 1];
  return last?.role === "assistant" && callsOf(last).length > 0;
}

function toMessages(input: AgentInput, world: World = systemWorld()): readonly Message[] {
  if (typeof input !== "string") return input;
  return [{ role: "user", id: freshId("user_", world.random), content: [{ type: "text", text: input }] }];
}

function noStore(name: string): never {
  throw new StatewrightError("missing_store", {
    what: `the agent "${name}" was asked to resume without a store`,
    next: "Give the agent or the call the store that holds the thread",
  });
}
