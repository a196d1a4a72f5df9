/**
 * The killed run in LangGraph.js, in two documented forms: actions as `task`s of a node, each with a saved result,
 * and actions as tools of a `ToolNode`. Durability is `sync`, the strictest mode; the approval is an `interrupt`.
 */
import { join } from "node:path";
import type { PeerSaver } from "../peers/langgraph.ts";
import { type Action, actions, type ExternalWorld, getResult } from "./external-world.ts";
import type { PeerId, Program, Stop } from "./program.ts";

interface PeerProgramGraph {
  invoke(input: unknown, config: object): Promise<Values>;
  getState(config: object): Promise<Snapshot>;
}

interface Values {
  readonly results?: readonly string[];
  readonly messages?: readonly { readonly content: unknown; readonly tool_call_id?: string }[];
  readonly verdict?: string;
}

interface Snapshot {
  readonly values: Values;
  readonly createdAt?: string;
  readonly tasks: readonly { readonly interrupts: readonly unknown[] }[];
}

interface Builder {
  addNode(name: string, body: unknown): Builder;
  addEdge(from: string, to: string): Builder;
  compile(options: { readonly checkpointer: PeerSaver }): PeerProgramGraph;
}

interface Channel {
  (options?: object): unknown;
  Root(shape: object): unknown;
}

/** Part of LangGraph.js used by this program. */
interface LangGraph {
  readonly StateGraph: new (state: unknown) => Builder;
  readonly Annotation: Channel;
  readonly MessagesAnnotation: { readonly spec: object };
  readonly ToolNode: new (tools: readonly unknown[]) => unknown;
  readonly AIMessage: new (fields: object) => unknown;
  readonly Command: new (fields: object) => unknown;
  readonly SqliteSaver: { fromConnString(path: string): SaverWithWrites };
  readonly interrupt: (payload: object) => { readonly ok: boolean };
  readonly task: <Args extends readonly unknown[], Result>(
    name: string,
    body: (...args: Args) => Promise<Result>,
  ) => (...args: Args) => Promise<Result>;
  readonly tool: (body: (args: never, config: never) => unknown, options: object) => unknown;
}

interface SaverWithWrites extends PeerSaver {
  put(...args: readonly unknown[]): Promise<unknown>;
  putWrites(...args: readonly unknown[]): Promise<unknown>;
}

export async function openLangGraph(
  folder: string,
  { kind, entry, world }: { readonly kind: PeerId; readonly entry: string; readonly world: ExternalWorld },
): Promise<Program> {
  const langgraph = (await import(entry)) as LangGraph;
  const saver = langgraph.SqliteSaver.fromConnString(join(folder, "runs.db"));
  addKillPoints(saver, world);
  const graph =
    kind === "tasks" ? createTaskGraph(langgraph, saver, world) : createToolNodeGraph(langgraph, saver, world);
  return {
    runToStop: async (thread) => {
      const config = { configurable: { thread_id: thread }, durability: "sync" };
      const { createdAt, tasks, values } = await graph.getState(config);
      // Not `next`, which is also empty after all tasks have ended and before the following checkpoint is written.
      if (createdAt !== undefined && tasks.length === 0) return toStop(values, tasks);
      const waits = tasks.some(({ interrupts }) => interrupts.length > 0);
      const input = waits ? new langgraph.Command({ resume: { ok: true } }) : null;
      await graph.invoke(createdAt === undefined ? {} : input, config);
      const after = await graph.getState(config);
      return toStop(after.values, after.tasks);
    },
    close: () => saver.db.close(),
  };
}

/** Adds the same kill points as around a commit of Statewright: before the write, and after the write to the file. */
function addKillPoints(saver: SaverWithWrites, world: ExternalWorld): void {
  for (const name of ["put", "putWrites"] as const) {
    const write = saver[name].bind(saver);
    saver[name] = async (...args) => {
      world.passKillPoint();
      const saved = await write(...args);
      world.passKillPoint();
      return saved;
    };
  }
}

function createTaskGraph(langgraph: LangGraph, checkpointer: PeerSaver, world: ExternalWorld): PeerProgramGraph {
  const { Annotation, StateGraph, interrupt, task } = langgraph;
  const run = task("run", async (action: Action, thread: string) => {
    await world.runAction(thread, action);
    return getResult(action);
  });
  const runAll = async (selected: readonly Action[], config: Config): Promise<Values> => ({
    results: await Promise.all(selected.map((action) => run(action, config.configurable.thread_id))),
  });
  const results = Annotation({
    default: () => [],
    reducer: (before: readonly string[], more: readonly string[]) => [...before, ...more],
  });
  return new StateGraph(Annotation.Root({ results, verdict: Annotation() }))
    .addNode("plan", () => ({}))
    .addNode("prepare", (_state: unknown, config: Config) => runAll(actions.before, config))
    .addNode("ask", () => ({ verdict: interrupt({ question: "approve" }).ok ? "yes" : "no" }))
    .addNode("settle", (_state: unknown, config: Config) => runAll(actions.after, config))
    .addNode("end", () => ({}))
    .addEdge("__start__", "plan")
    .addEdge("plan", "prepare")
    .addEdge("prepare", "ask")
    .addEdge("ask", "settle")
    .addEdge("settle", "end")
    .addEdge("end", "__end__")
    .compile({ checkpointer });
}

interface Config {
  readonly configurable: { readonly thread_id: string };
}

function createToolNodeGraph(langgraph: LangGraph, checkpointer: PeerSaver, world: ExternalWorld): PeerProgramGraph {
  const { AIMessage, Annotation, MessagesAnnotation, StateGraph, ToolNode, interrupt, tool } = langgraph;
  const run = tool(
    ({ action }: { readonly action: Action }, config: Config) => world.runAction(config.configurable.thread_id, action),
    {
      name: "run",
      description: "Run an action.",
      schema: { type: "object", properties: { action: { type: "string" } }, required: ["action"] },
    },
  );
  const createCallMessage = (id: string, selected: readonly Action[]): unknown =>
    new AIMessage({
      id,
      content: "",
      tool_calls: selected.map((action) => ({ id: action, name: "run", args: { action } })),
    });
  return new StateGraph(Annotation.Root({ ...MessagesAnnotation.spec, verdict: Annotation() }))
    .addNode("plan", () => ({ messages: [createCallMessage("plan", actions.before)] }))
    .addNode("prepare", new ToolNode([run]))
    .addNode("ask", () => {
      const verdict = interrupt({ question: "approve" }).ok ? "yes" : "no";
      return { verdict, messages: [createCallMessage("settle", actions.after)] };
    })
    .addNode("settle", new ToolNode([run]))
    .addNode("end", () => ({}))
    .addEdge("__start__", "plan")
    .addEdge("plan", "prepare")
    .addEdge("prepare", "ask")
    .addEdge("ask", "settle")
    .addEdge("settle", "end")
    .addEdge("end", "__end__")
    .compile({ checkpointer });
}

function toStop({ results, messages = [], verdict = "" }: Values, tasks: readonly unknown[]): Stop {
  if (tasks.length > 0) return { kind: "waiting" };
  const toolTexts = messages.flatMap(({ content, tool_call_id }) =>
    tool_call_id === undefined ? [] : [String(content)],
  );
  return { kind: "done", results: results ?? toolTexts, verdict };
}
