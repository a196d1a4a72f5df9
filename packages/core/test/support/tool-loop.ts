/**
 * The smallest agent: a scripted model and a tool node in a loop. The model is strict: it refuses a transcript in
 * which a tool call is not answered exactly once, in order and directly after its message, like a provider.
 */
import * as z from "zod";
import {
  type AssistantMessage,
  approval,
  type ConversationTypes,
  channel,
  defineContext,
  defineGraph,
  defineState,
  END,
  type FinishReason,
  type Graph,
  type Inspector,
  type InterruptShape,
  type Json,
  listToolCalls,
  type MemoryStore,
  type Message,
  type Middleware,
  type Model,
  type ModelRequest,
  memoryStore,
  type RunEvent,
  type RunHandle,
  type RunResult,
  resume,
  route,
  run,
  type SecretSource,
  START,
  type StateOf,
  type Store,
  type Tool,
  type ToolCallBlock,
  type ToolMessage,
  type ToolNodeOptions,
  type ToolRegistry,
  type ToolResult,
  toolNode,
} from "../../src/index.ts";
import { createVirtualWorld, type VirtualWorld } from "./virtual-world.ts";

/** State and context of the loops. */
export const Chat = defineState({
  messages: channel.messages(),
  cart: z.array(z.string()).default([]),
  notes: channel.list(z.string()),
});
export const Desk = defineContext({
  customer: z.string().default("nobody"),
  client: z.custom<{ readonly key: string }>().optional(),
});
export type ChatState = StateOf<typeof Chat>;
export type DeskContext = { readonly customer: string; readonly client?: { readonly key: string } | undefined };
export type DeskTool = Tool<ChatState, DeskContext>;

/** Part of a scripted reply. */
export type Part = string | ToolCallBlock;
/** Scripted reply, or a function that creates the reply from the request. */
export type Turn = readonly Part[] | ((request: ModelRequest) => readonly Part[]);

/** Creates a tool call part. */
export function call(name: string, args: Json = {}, id = `id_${name}`): ToolCallBlock {
  return { type: "call", id, name, args };
}

/** Creates a tool call part whose arguments are not a JSON object. */
export function createRawCall(name: string, raw: string, id = `id_${name}`): ToolCallBlock {
  return { type: "call", id, name, args: {}, raw };
}

export interface LoopOptions {
  readonly tools: readonly DeskTool[] | ToolRegistry<ChatState, DeskContext>;
  readonly turns: readonly Turn[];
  readonly middleware?: readonly Middleware<DeskContext, ChatState>[];
  readonly strategy?: ToolNodeOptions<ChatState, DeskContext>["strategy"];
  readonly maxConcurrency?: number;
  readonly onInvalidCall?: ToolNodeOptions<ChatState, DeskContext>["onInvalidCall"];
  /** Model id; the text before the slash is the provider. */
  readonly model?: string;
  readonly maxSteps?: number;
  readonly steering?: ToolNodeOptions<ChatState, DeskContext>["steering"];
  readonly maxCalls?: number;
  readonly inbox?: "one" | "all";
  readonly store?: Store | "none";
  readonly world?: VirtualWorld;
  readonly context?: { readonly customer?: string; readonly client?: { readonly key: string } };
  readonly secrets?: SecretSource;
  readonly inspect?: Inspector;
  /** Signal that cancels the run. */
  readonly signal?: AbortSignal;
  readonly toolUpdates?: boolean;
  /** True: no listener reads the events. */
  readonly deaf?: boolean;
  readonly finish?: FinishReason;
  /** False for a model without image support. */
  readonly images?: boolean;
  readonly limits?: ToolNodeOptions<ChatState, DeskContext>["limits"];
  readonly artifacts?: ToolNodeOptions<ChatState, DeskContext>["artifacts"];
  /** Middleware of the graph. */
  readonly policies?: readonly Middleware[];
  /** Interrupts in addition to `approve`. */
  readonly interrupts?: InterruptShape;
}

export type ChatResult = RunResult<ChatState>;

export interface Loop {
  readonly graph: Graph<ConversationTypes>;
  readonly store: Store | undefined;
  readonly world: VirtualWorld;
  readonly events: readonly RunEvent[];
  /** Each request as JSON text. */
  readonly wires: readonly string[];
  readonly requests: readonly ModelRequest[];
  /** Texts of all commits to the store. */
  readonly saved: () => string;
  readonly start: (input?: Message) => RunHandle<ChatState>;
  readonly again: (
    answers?: Readonly<Record<string, unknown>>,
    other?: { readonly store?: Store; readonly secrets?: SecretSource },
  ) => RunHandle<ChatState>;
}

/** Creates a loop; `start` runs it on the thread "t", `again` resumes it. */
export function createToolLoop(options: LoopOptions): Loop {
  const {
    tools,
    turns,
    middleware = [],
    strategy,
    maxConcurrency,
    onInvalidCall,
    world = createVirtualWorld(),
  } = options;
  const requests: ModelRequest[] = [];
  const wires: string[] = [];
  const commits: string[] = [];
  const events: RunEvent[] = [];
  const store = options.store === "none" ? undefined : watched(options.store ?? memoryStore(), commits);
  const node = toolNode<ChatState, DeskContext>({
    tools,
    middleware,
    ...(strategy === undefined ? {} : { strategy }),
    ...(maxConcurrency === undefined ? {} : { maxConcurrency }),
    ...(onInvalidCall === undefined ? {} : { onInvalidCall }),
    ...(options.steering === undefined ? {} : { steering: options.steering }),
    ...(options.maxCalls === undefined ? {} : { maxCalls: options.maxCalls }),
    ...(options.limits === undefined ? {} : { limits: options.limits }),
    ...(options.artifacts === undefined ? {} : { artifacts: options.artifacts }),
  });
  const model: Model = {
    id: options.model ?? "scripted",
    images: options.images,
    respond: async (request) => {
      wires.push(JSON.stringify(request));
      requests.push(structuredClone(request));
      checkTranscript(request.messages);
      const turn = turns[request.messages.filter(({ role }) => role === "assistant").length];
      if (turn === undefined) throw new Error("the script has ended");
      const parts = typeof turn === "function" ? turn(request) : turn;
      const content = parts.map((part) => (typeof part === "string" ? { type: "text" as const, text: part } : part));
      const calls = content.some(({ type }) => type === "call");
      return { content, finish: calls ? (options.finish ?? "calls") : "stop" };
    },
  };
  const graph = defineGraph({
    name: "desk",
    state: Chat,
    context: Desk,
    ...(options.inbox === undefined ? {} : { inbox: options.inbox }),
    interrupts: { approve: approval, ...options.interrupts },
    ...(options.policies === undefined ? {} : { middleware: options.policies }),
  })
    .nodes({
      model: async (state, runtime) => ({
        messages: [
          await runtime.model({ model, request: { messages: state.messages, tools: node.registry.forModel() } }),
        ],
      }),
      tools: node,
    })
    .edges({
      [START]: "model",
      model: route(["tools", "model", END], (state) =>
        lastCalls(state.messages) ? "tools" : state.messages.at(-1)?.role === "user" ? "model" : END,
      ),
      tools: "model",
    });
  const common = {
    thread: "t",
    world,
    context: options.context ?? {},
    ...(options.secrets === undefined ? {} : { secrets: options.secrets }),
    ...(options.maxSteps === undefined ? {} : { maxSteps: options.maxSteps }),
    ...(options.inspect === undefined ? {} : { inspect: options.inspect }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    ...(options.toolUpdates === undefined ? {} : { toolUpdates: options.toolUpdates }),
  };
  const listen = (handle: RunHandle<ChatState>): RunHandle<ChatState> => {
    if (options.deaf !== true) handle.on((event) => events.push(event));
    return handle;
  };
  return {
    graph,
    store,
    world,
    events,
    wires,
    requests,
    saved: () => commits.join("\n"),
    start: (input = user("go")) =>
      listen(run(graph, { ...common, ...(store === undefined ? {} : { store }), input: { messages: [input] } })),
    again: (answers = {}, other = {}) =>
      listen(
        resume(graph, {
          ...common,
          answers,
          store: other.store === undefined ? (store ?? memoryStore()) : watched(other.store, commits),
          ...(other.secrets === undefined ? {} : { secrets: other.secrets }),
        }),
      ),
  };
}

/** Runs a loop to its end without a clock. */
export async function runToolLoop(options: LoopOptions): Promise<Loop & { readonly result: ChatResult }> {
  const loop = createToolLoop(options);
  const result = await loop.start().result;
  return { ...loop, result };
}

export function user(text: string, id = "u1"): Message {
  return { role: "user", id, content: [{ type: "text", text }] };
}

function lastCalls(all: readonly Message[]): boolean {
  const last = all[all.length - 1];
  return last?.role === "assistant" && listToolCalls(last).length > 0;
}

/** Throws unless every call is answered once, in call order, directly after its message, under a unique id. */
export function checkTranscript(all: readonly Message[]): void {
  let due: string[] = [];
  for (const message of all) {
    if (message.role === "tool") {
      const expected = due.shift();
      if (message.callId !== expected) throw new Error(`answer to ${message.callId} where ${expected} is due`);
      continue;
    }
    if (due.length > 0) throw new Error(`no answer to ${due.join(", ")}`);
    if (message.role === "assistant") due = listToolCalls(message).map(({ id }) => id);
    if (new Set(due).size < due.length) throw new Error(`two calls with one id: ${due.join(", ")}`);
  }
  if (due.length > 0) throw new Error(`no answer to ${due.join(", ")}`);
}

/** Returns the tool messages of a checked transcript. */
export function listToolAnswers(of: { readonly result: ChatResult } | ChatResult): readonly ToolMessage[] {
  const { state } = "result" in of ? of.result : of;
  checkTranscript(state.messages);
  return state.messages.filter((message): message is ToolMessage => message.role === "tool");
}

/** Returns the text of an answer, with JSON blocks as JSON. */
export function getAnswerText(message: ToolMessage | undefined): string {
  return (message?.content ?? [])
    .map((block) => (block.type === "text" ? block.text : block.type === "json" ? JSON.stringify(block.value) : ""))
    .join("");
}

/** Filters events by types, in order. */
export function listEvents<const Type extends RunEvent["type"]>(
  of: { readonly events: readonly RunEvent[] },
  ...types: Type[]
): readonly Extract<RunEvent, { readonly type: Type }>[] {
  return of.events.filter((event): event is Extract<RunEvent, { readonly type: Type }> =>
    types.some((type) => type === event.type),
  );
}

/** Returns the results of terminal tool events, in event order. */
export function listResults(of: { readonly events: readonly RunEvent[] }): readonly ToolResult[] {
  return listEvents(of, "tool.completed", "tool.failed").map(({ result }) => result);
}

/** Wraps a store and records each commit as text. */
function watched(store: Store, commits: string[]): Store {
  return {
    ...store,
    commit: (commit, onCommitted) => {
      commits.push(JSON.stringify(commit));
      store.commit(commit, onCommitted);
    },
  };
}

/** Creates a promise with its resolve function. */
export function gate<Value = void>(): {
  readonly open: (value: Value) => void;
  readonly fail: (error: unknown) => void;
  readonly passed: Promise<Value>;
} {
  let open: (value: Value) => void = () => undefined;
  let fail: (error: unknown) => void = () => undefined;
  const passed = new Promise<Value>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { open, fail, passed };
}

export type { AssistantMessage, MemoryStore };
