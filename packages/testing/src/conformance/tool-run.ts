/** Calls of tools in a real run: a model that makes them, the tool node that answers them, and a look at all that was sent. */
import {
  callsOf,
  defineGraph,
  defineState,
  END,
  type Json,
  type JsonObject,
  type Message,
  type Model,
  messages,
  type RunHandle,
  type RunResult,
  route,
  run,
  START,
  systemWorld,
  type Tool,
  type ToolMessage,
  type ToolOutput,
  type ToolRegistry,
  toolNode,
  type World,
} from "@statewright/core";
import { checkTranscript } from "../transcript.ts";
import type { VirtualClock } from "../virtual-clock.ts";

/** What tools need beside their arguments. */
export interface PackWorld {
  /** The state that tools inject; each reads its own part of it. */
  readonly state?: object;
  readonly context?: object;
  readonly secrets?: Readonly<Record<string, string>>;
  /** Texts that no request may hold. Default: all texts of eight letters and more in context and secrets. */
  readonly hidden?: readonly string[];
  /** Which words of details a tool also says to the model on purpose. */
  readonly mayRepeat?: (word: string) => boolean;
  /** Default: the real one. A virtual clock is moved whenever nothing else goes on. */
  readonly world?: World | VirtualClock;
  /** How long a tool may take to stop after its signal, in milliseconds of its world. Default 5,000. */
  readonly stopsWithinMs?: number;
}

/** A call to make. */
export interface PackCall {
  readonly tool: string;
  readonly args: JsonObject;
  readonly id: string;
  /** What arrived, where it was no JSON object. */
  readonly raw?: string;
}

/** What came of calls. */
export interface PackRun {
  readonly status: RunResult<unknown>["status"] | "failed";
  readonly failure: unknown;
  readonly answers: readonly ToolMessage[];
  /** Every request, as text. */
  readonly wires: readonly string[];
  /** Ids of calls that reached their tool. */
  readonly started: readonly string[];
  readonly updates: readonly ToolOutput[];
  readonly details: readonly unknown[];
  /** Whether every body that was entered came to its end. */
  readonly stopped: boolean;
}

/** Let a model make these calls in one response. With `stopAtUpdate` the run is cancelled at the first update. */
export async function converse(
  pack: PackWorld,
  registry: ToolRegistry<never, never>,
  calls: readonly PackCall[],
  { stopAtUpdate = false }: { readonly stopAtUpdate?: boolean } = {},
): Promise<PackRun> {
  const wires: string[] = [];
  const started: string[] = [];
  const updates: ToolOutput[] = [];
  const details: unknown[] = [];
  const bodies: Promise<unknown>[] = [];
  const world = pack.world ?? systemWorld();
  const handle = run(graphOf(pack, registry, calls, wires, bodies), {
    input: { messages: [{ role: "user", id: "user", content: [{ type: "text", text: "Go" }] }] },
    world,
    secrets: { get: (name) => pack.secrets?.[name] },
  });
  handle.on((event) => {
    if (event.type === "tool.started") started.push(event.callId);
    if (event.type === "tool.completed" || event.type === "tool.failed") details.push(event.result.details);
    if (event.type !== "tool.update") return;
    updates.push(event.partial);
    if (stopAtUpdate) handle.cancel("the update was seen");
  });
  const end = await settled(handle, world);
  const state = "error" in end ? undefined : end.result.state;
  return {
    status: "error" in end ? "failed" : end.result.status,
    failure: "error" in end ? end.error : undefined,
    answers: (state?.messages ?? []).filter((message): message is ToolMessage => message.role === "tool"),
    wires,
    started,
    updates,
    details,
    stopped: await allEnd(bodies, world, pack.stopsWithinMs ?? 5_000),
  };
}

const Conversation = defineState({ messages: messages() });
type Talk = { readonly messages: readonly Message[] };

function graphOf(
  pack: PackWorld,
  registry: ToolRegistry<never, never>,
  calls: readonly PackCall[],
  wires: string[],
  bodies: Promise<unknown>[],
) {
  const tools = [...registry.tools().values()].map((tool) => bound(tool, pack, bodies));
  const node = toolNode<Talk>({ tools: registryLike(registry, tools) });
  const model = modelThatCalls(calls, wires);
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
        return last?.role === "assistant" && callsOf(last).length > 0 ? "tools" : END;
      }),
      tools: "model",
    });
}

/** The same names; each tool with the state and context of the pack. */
function registryLike(registry: ToolRegistry<never, never>, tools: readonly Tool<Talk>[]): ToolRegistry<Talk> {
  const byName = new Map(tools.map((tool) => [tool.spec.name, tool]));
  return {
    ...(registry as ToolRegistry<unknown> as ToolRegistry<Talk>),
    get: (name) => byName.get(name),
    tools: () => byName,
  };
}

function bound(tool: Tool<never, never>, pack: PackWorld, bodies: Promise<unknown>[]): Tool<Talk> {
  const { spec, resolve, prepareArguments } = tool;
  const { state = {}, context = {} } = pack;
  return {
    spec,
    ...(prepareArguments === undefined ? {} : { prepareArguments: (args) => prepareArguments.call(tool, args) }),
    ...(resolve === undefined ? {} : { resolve: (source) => resolve.call(tool, { ...source, state, context }) }),
    call: (_state, runtime, call) => {
      const body = Promise.resolve().then(() => tool.call(state as never, { ...runtime, context } as never, call));
      bodies.push(body.catch(endedByThrowing));
      return body;
    },
  };
}

function endedByThrowing(): void {
  // How a body ends is told by its result; that it ends is what is looked at.
}

/** Calls first, and says a word when the calls are answered. Strict: a transcript that a provider refuses is refused. */
function modelThatCalls(calls: readonly PackCall[], wires: string[]): Model {
  return {
    id: "conformance/model",
    respond: async (request) => {
      wires.push(JSON.stringify(request));
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

type End<Result> = { readonly result: Result } | { readonly error: unknown };

async function settled<State>(
  { result }: RunHandle<State>,
  world: World | VirtualClock,
): Promise<End<Awaited<RunHandle<State>["result"]>>> {
  let ended = false;
  const end = result
    .then(
      (value) => ({ result: value }),
      (error: unknown) => ({ error }),
    )
    .finally(() => {
      ended = true;
    });
  if ("next" in world) {
    for (await world.settle(); !ended; await world.settle()) if (!ended) await world.next();
  }
  return end;
}

/** Whether all bodies end, given some time of their world. */
async function allEnd(
  bodies: readonly Promise<unknown>[],
  world: World | VirtualClock,
  withinMs: number,
): Promise<boolean> {
  let isOver = false;
  const end = Promise.all(bodies).then(() => true);
  const timeUp = new Promise<boolean>((resolve) => {
    const cancel = world.schedule.after(withinMs, () => resolve(false));
    void end.finally(() => {
      isOver = true;
      cancel();
    });
  });
  if ("next" in world) for (await world.settle(); !isOver && (await world.next()); );
  return Promise.race([end, timeUp]);
}

/** The words of eight letters and more in some data. */
export function wordsIn(data: unknown): readonly string[] {
  const words = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value === "string") {
      if (value.length >= 8) words.add(value);
    } else if (typeof value === "object" && value !== null) for (const part of Object.values(value)) visit(part);
  };
  visit(data);
  return [...words];
}
