/**
 * Executes tool calls in a real run: a scripted model makes the calls, a tool node executes them, and every model
 * request is recorded.
 */
import {
  channel,
  defineGraph,
  defineState,
  END,
  type Json,
  type JsonObject,
  listToolCalls,
  type Message,
  type Model,
  type RunHandle,
  type RunResult,
  route,
  run,
  START,
  type Tool,
  type ToolMessage,
  type ToolOutput,
  type ToolRegistry,
  toolNode,
  type World,
} from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { checkTranscript } from "../transcript.ts";
import type { VirtualClock } from "../virtual-clock.ts";

/** State, context, secrets and clock for the tools under test. */
export interface PackWorld {
  /** State for injected arguments of the tools. */
  readonly state?: object;
  readonly context?: object;
  readonly secrets?: Readonly<Record<string, string>>;
  /**
   * Texts that no model request may contain. Default: all texts of at least eight characters in `context` and
   * `secrets`.
   */
  readonly hidden?: readonly string[];
  /** Returns true for a text of tool details that the tool also returns to the model on purpose. */
  readonly mayRepeat?: (word: string) => boolean;
  /** Default: the system world. A virtual clock is advanced whenever the run is idle. */
  readonly world?: World | VirtualClock;
  /** Maximum time for a tool to stop after its abort signal, in milliseconds of the `world`. Default 5,000. */
  readonly stopsWithinMs?: number;
}

/** A tool call of the scripted model. */
export interface PackCall {
  readonly tool: string;
  readonly args: JsonObject;
  readonly id: string;
  /** Received argument text, when the text was no JSON object. */
  readonly raw?: string;
}

/** Results of tool calls. */
export interface PackRun {
  readonly status: RunResult<unknown>["status"] | "failed";
  readonly failure: unknown;
  readonly answers: readonly ToolMessage[];
  /** Every model request, as JSON text. */
  readonly requests: readonly string[];
  /** Ids of started tool calls. */
  readonly started: readonly string[];
  readonly updates: readonly ToolOutput[];
  readonly details: readonly unknown[];
  /** True when every started tool body ended. */
  readonly stopped: boolean;
}

/**
 * Lets a scripted model make these tool calls in a single response. With `stopAtUpdate`, the run is cancelled at the
 * first tool update.
 */
export async function runToolCalls(
  pack: PackWorld,
  registry: ToolRegistry<never, never>,
  calls: readonly PackCall[],
  { stopAtUpdate = false }: { readonly stopAtUpdate?: boolean } = {},
): Promise<PackRun> {
  const requests: string[] = [];
  const started: string[] = [];
  const updates: ToolOutput[] = [];
  const details: unknown[] = [];
  const bodies: Promise<unknown>[] = [];
  const world = pack.world ?? systemWorld();
  const handle = run(createGraph(pack, { registry, model: createCallingModel(calls, requests), bodies }), {
    input: { messages: [{ role: "user", id: "user", content: [{ type: "text", text: "Go" }] }] },
    world,
    secrets: { get: (name) => pack.secrets?.[name] },
  });
  handle.on((event) => {
    if (event.type === "tool.started") started.push(event.callId);
    if (event.type === "tool.completed" || event.type === "tool.failed") details.push(event.result.details);
    if (event.type !== "tool.update") return;
    updates.push(event.partial);
    if (stopAtUpdate) handle.cancel("the test received a tool update");
  });
  const end = await waitForRun(handle, world);
  const state = "error" in end ? undefined : end.result.state;
  return {
    status: "error" in end ? "failed" : end.result.status,
    failure: "error" in end ? end.error : undefined,
    answers: (state?.messages ?? []).filter((message): message is ToolMessage => message.role === "tool"),
    requests,
    started,
    updates,
    details,
    stopped: await waitForBodies(bodies, world, pack.stopsWithinMs ?? 5_000),
  };
}

const Conversation = defineState({ messages: channel.messages() });
type ConversationState = { readonly messages: readonly Message[] };

/** Parts of the graph, and the log of its tool bodies. */
interface GraphParts {
  readonly registry: ToolRegistry<never, never>;
  readonly model: Model;
  readonly bodies: Promise<unknown>[];
}

function createGraph(pack: PackWorld, { registry, model, bodies }: GraphParts) {
  const tools = [...registry.tools().values()].map((tool) => bindTool(tool, pack, bodies));
  const node = toolNode<ConversationState>({ tools: createBoundRegistry(registry, tools) });
  return defineGraph({ name: "tool-conformance", state: Conversation })
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
      model: route(["tools", END], ({ messages: all }) => {
        const last = all[all.length - 1];
        return last?.role === "assistant" && listToolCalls(last).length > 0 ? "tools" : END;
      }),
      tools: "model",
    });
}

/** Returns a registry with the same names, whose tools use the state and context of the pack. */
function createBoundRegistry(
  registry: ToolRegistry<never, never>,
  tools: readonly Tool<ConversationState>[],
): ToolRegistry<ConversationState> {
  const byName = new Map(tools.map((tool) => [tool.spec.name, tool]));
  return {
    ...(registry as ToolRegistry<unknown> as ToolRegistry<ConversationState>),
    get: (name) => byName.get(name),
    tools: () => byName,
  };
}

function bindTool(tool: Tool<never, never>, pack: PackWorld, bodies: Promise<unknown>[]): Tool<ConversationState> {
  const { spec, resolve, prepareArguments } = tool;
  const { state = {}, context = {} } = pack;
  return {
    spec,
    ...(prepareArguments === undefined ? {} : { prepareArguments: (args) => prepareArguments.call(tool, args) }),
    ...(resolve === undefined ? {} : { resolve: (source) => resolve.call(tool, { ...source, state, context }) }),
    call: (_state, runtime, call) => {
      const body = Promise.resolve().then(() => tool.call(state as never, { ...runtime, context } as never, call));
      bodies.push(body.catch(ignoreError));
      return body;
    },
  };
}

function ignoreError(): void {
  // Ignored: the tool result reports the error; only the end of the body matters here.
}

/**
 * Creates a model that makes the calls first and replies with a text after their results. Throws for a transcript
 * that providers refuse.
 */
function createCallingModel(calls: readonly PackCall[], requests: string[]): Model {
  return {
    id: "conformance/model",
    respond: async (request) => {
      requests.push(JSON.stringify(request));
      checkTranscript(request.messages);
      if (request.messages.some(({ role }) => role === "tool"))
        return { content: [{ type: "text", text: "Done" }], finish: "stop" };
      const content = calls.map(({ tool, args, id, raw }) => ({
        type: "call" as const,
        id,
        name: tool,
        args: (raw === undefined ? args : {}) as Json,
        ...(raw === undefined ? {} : { raw }),
      }));
      return { content, finish: "calls" };
    },
  };
}

type RunEnd<Result> = { readonly result: Result } | { readonly error: unknown };

async function waitForRun<State>(
  { result }: RunHandle<State>,
  world: World | VirtualClock,
): Promise<RunEnd<Awaited<RunHandle<State>["result"]>>> {
  let isFinished = false;
  const end = result
    .then(
      (value) => ({ result: value }),
      (error: unknown) => ({ error }),
    )
    .finally(() => {
      isFinished = true;
    });
  if ("next" in world) {
    for (await world.waitUntilIdle(); !isFinished; await world.waitUntilIdle()) if (!isFinished) await world.next();
  }
  return end;
}

/** Returns true if all tool bodies end within `timeoutMs` milliseconds of the world. */
async function waitForBodies(
  bodies: readonly Promise<unknown>[],
  world: World | VirtualClock,
  timeoutMs: number,
): Promise<boolean> {
  let isFinished = false;
  const end = Promise.all(bodies).then(() => true);
  const timeout = new Promise<boolean>((resolve) => {
    const cancel = world.schedule.after(timeoutMs, () => resolve(false));
    void end.finally(() => {
      isFinished = true;
      cancel();
    });
  });
  if ("next" in world) for (await world.waitUntilIdle(); !isFinished && (await world.next()); );
  return Promise.race([end, timeout]);
}

/** Lists the distinct texts of at least eight characters in a value. */
export function listTexts(data: unknown): readonly string[] {
  const texts = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value === "string") {
      if (value.length >= 8) texts.add(value);
    } else if (typeof value === "object" && value !== null) for (const part of Object.values(value)) visit(part);
  };
  visit(data);
  return [...texts];
}
