/** `createAgent`: a model and its tools as an ordinary graph, with `run` and `resume` that take a person's words. */
import {
  type AssistantMessage,
  approval,
  type Channel,
  type ContextDefinition,
  callsOf,
  checkOptions,
  clientAnswer,
  defineGraph,
  defineMiddleware,
  defineState,
  END,
  freshId,
  type Graph,
  type InterruptShape,
  isModel,
  isRegistry,
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
  type ToolCallBlock,
  type ToolMessage,
  type ToolNodeOptions,
  type ToolRegistry,
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
  /** Tools, or a registry that has some: what is changed in it counts from the next request to the model on. */
  readonly tools?:
    | readonly Tool<AgentState<Types>["state"], NoInfer<Context>>[]
    | ToolRegistry<AgentState<Types>["state"], NoInfer<Context>>;
  /** The names of the tools that the model is shown: always these, or in each turn those that the function gives. Default: all. */
  readonly allowedTools?:
    | readonly string[]
    | ((state: AgentState<Types>["state"], context: NoInfer<Context>) => readonly string[]);
  /** What becomes of calls that cannot be run. Default: answered, so that the model mends them. */
  readonly onInvalidCall?: ToolNodeOptions<unknown, unknown>["onInvalidCall"];
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
  /** How much of a tool's result the model sees. Default: 8 KiB of one block, 50 KiB in all. */
  readonly limits?: ToolNodeOptions<unknown, unknown>["limits"];
  /** Where large results are kept, instead of in the store of the run. */
  readonly artifacts?: ToolNodeOptions<unknown, unknown>["artifacts"];
  /** How many calls of one message may run; those after them are refused, each with an answer. Default: no limit. */
  readonly maxToolCalls?: number;
  /** What a message that comes while tools are at work does to calls that have not begun. Default `skip-remaining`. */
  readonly steering?: ToolNodeOptions<unknown, unknown>["steering"];
  /** How many of the messages that wait for a run are taken in at a time. Default `all`. */
  readonly inbox?: "one" | "all";
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
  allowedTools: true,
  onInvalidCall: true,
  state: true,
  context: true,
  middleware: true,
  store: true,
  settings: true,
  retry: true,
  strategy: true,
  maxToolConcurrency: true,
  limits: true,
  artifacts: true,
  maxToolCalls: true,
  steering: true,
  inbox: true,
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
  const { name, model, instructions, allowedTools, state, settings, store } = options as Readonly<
    Record<string, unknown>
  >;
  const owner = typeof name === "string" ? `the agent "${name}"` : "an agent";
  if (!isModel(model))
    throw unfit(`the model of ${owner}`, model, "a model, such as scriptedModel([…]) or one of a provider");
  if (instructions !== undefined && typeof instructions !== "string" && typeof instructions !== "function")
    throw unfit(`the instructions of ${owner}`, instructions, "a text, or a function of state and context");
  if (allowedTools !== undefined && !Array.isArray(allowedTools) && typeof allowedTools !== "function")
    throw unfit(`allowedTools of ${owner}`, allowedTools, "a list of names, or a function of state and context");
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
  | "name"
  | "version"
  | "model"
  | "settings"
  | "retry"
  | "strategy"
  | "maxToolConcurrency"
  | "limits"
  | "artifacts"
  | "maxToolCalls"
  | "steering"
  | "inbox"
  | "onInvalidCall"
> & {
  readonly allowedTools?: readonly string[] | ((state: never, context: never) => readonly string[]);
  readonly instructions?: string | ((state: never, context: never) => string);
  readonly tools?: readonly Tool<never, never>[] | ToolRegistry<never, never>;
  readonly state?: Pick<StateDefinition, "channels">;
  readonly context?: Pick<ContextDefinition, "schema">;
  readonly middleware?: readonly Middleware<never, never>[];
};

type Conversation = { readonly messages: readonly Message[] };

/** The graph of an agent: model → tools → model, until an answer calls none. */
function agentGraph(options: AnyAgentOptions): Graph {
  const { name, version = 1, strategy, maxToolConcurrency, maxToolCalls, steering, inbox, onInvalidCall } = options;
  const context = options.context as ContextDefinition | undefined;
  const tools = registryOf(options);
  const middleware = (options.middleware ?? []) as readonly Middleware[];
  const start = defineGraph({
    name,
    version,
    state: defineState({
      ...channelsOf(middleware),
      ...options.state?.channels,
      messages: messages(),
    }),
    ...(context && { context }),
    ...(inbox !== undefined && { inbox }),
    interrupts: { approve: approval, ...clientQuestions(tools) },
  });
  const model = { run: askModel(options, tools, middleware), retry: options.retry ?? { attempts: 3 } };
  const answerCalls = toolNode({
    tools,
    middleware,
    ...(strategy && { strategy }),
    ...(onInvalidCall && { onInvalidCall }),
    ...(maxToolConcurrency !== undefined && { maxConcurrency: maxToolConcurrency }),
    ...(maxToolCalls !== undefined && { maxCalls: maxToolCalls }),
    ...(steering !== undefined && { steering }),
    ...(options.limits !== undefined && { limits: options.limits }),
    ...(options.artifacts !== undefined && { artifacts: options.artifacts }),
  });
  if (tools.names().length === 0) {
    return start.nodes({ model: { ...model, run: refusingCalls(model.run) } }).edges({
      [START]: "model",
      model: route(["model", END], (state) => (isAnswered(state.messages) ? END : "model")),
    });
  }
  return start.nodes({ model, tools: answerCalls }).edges({
    [START]: "model",
    model: route(["tools", "model", END], (state) =>
      callsTools(state.messages) ? "tools" : isAnswered(state.messages) ? END : "model",
    ),
    tools: route(["model", END], (state) => (isToEnd(state.messages) ? END : "model")),
  });
}

/** A tool without a body asks the application, under its own name. */
function clientQuestions(tools: ToolRegistry<Conversation>): InterruptShape {
  return Object.fromEntries(
    tools.names().flatMap((name) => {
      const spec = tools.get(name)?.spec;
      return spec?.client === true ? [[name, clientAnswer(spec)]] : [];
    }),
  );
}

/** What middleware keeps its facts in. What is no list is refused where the tool node is made. */
function channelsOf(middleware: readonly Middleware[]): NonNullable<Middleware["channels"]> {
  const channels: Record<string, Channel> = {};
  if (Array.isArray(middleware)) for (const each of middleware) Object.assign(channels, each?.channels);
  return channels;
}

function askModel(
  options: AnyAgentOptions,
  tools: ToolRegistry<Conversation>,
  middleware: readonly Middleware[],
): (state: Conversation, runtime: Pick<NodeRuntime, "context" | "model">) => Promise<{ messages: Message[] }> {
  const { model, instructions, settings } = options;
  const first = exposure(options, tools);
  return async (state, runtime) => {
    const told =
      typeof instructions === "function" ? instructions(state as never, runtime.context as never) : instructions;
    const request = { ...settings, instructions: told, messages: state.messages, tools: tools.forModel() };
    return { messages: [await runtime.model({ model, request, middleware: [...first, ...middleware] })] };
  };
}

/** Without tools no node answers calls: one that the model makes up is refused beside it, so that the conversation stays whole. */
function refusingCalls(ask: ReturnType<typeof askModel>): ReturnType<typeof askModel> {
  return async (state, runtime) => {
    const { messages: said } = await ask(state, runtime);
    const refusals = said.flatMap((message) =>
      message.role === "assistant" ? callsOf(message).map((call) => refusalOf(message, call)) : [],
    );
    return { messages: [...said, ...refusals] };
  };
}

function refusalOf(message: AssistantMessage, { id, name }: ToolCallBlock): ToolMessage {
  const text = `There is no tool "${name}". There are no tools.`;
  return {
    role: "tool",
    id: `${message.id}:${id}`,
    callId: id,
    name,
    content: [{ type: "text", text }],
    isError: true,
  };
}

function registryOf({ tools = [] }: AnyAgentOptions): ToolRegistry<Conversation> {
  return (isRegistry(tools) ? tools : toolRegistry(tools)) as ToolRegistry<Conversation>;
}

/** Shows the model what `allowedTools` names. A name that no tool has is refused, when the agent is made where that can be seen. */
function exposure(
  { allowedTools: allowed }: AnyAgentOptions,
  tools: ToolRegistry<Conversation>,
): readonly Middleware[] {
  if (allowed === undefined) return [];
  if (typeof allowed !== "function") tools.forModel(allowed);
  const selectTools: Middleware["selectTools"] = (names, { state, context }) => {
    if (typeof allowed !== "function") return names.filter((name) => allowed.includes(name));
    const chosen = allowed(state as never, context as never);
    return tools.forModel(chosen).map(({ name }) => name);
  };
  return [defineMiddleware({ name: "allowedTools", selectTools })];
}

/** Every call gets its answer from the tool node, also one that it refuses because the message was cut off. */
function callsTools(conversation: readonly Message[]): boolean {
  const last = conversation[conversation.length - 1];
  return last?.role === "assistant" && callsOf(last).length > 0;
}

/** Whether the model has the last word: a message that came while it spoke is answered next. */
function isAnswered(conversation: readonly Message[]): boolean {
  return conversation[conversation.length - 1]?.role === "assistant";
}

/** Whether a call of the last set asked the agent to end, and nobody has spoken since. */
function isToEnd(conversation: readonly Message[]): boolean {
  for (let index = conversation.length - 1; index >= 0; index--) {
    const message = conversation[index];
    if (message?.role !== "tool") return false;
    if (message.terminate === true) return true;
  }
  return false;
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
