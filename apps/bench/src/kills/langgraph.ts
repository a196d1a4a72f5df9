/**
 * The run that is killed, in LangGraph.js, in two of its documented ways: errands as `task`s of a node, each of which saves
 * its result, and as tools of its `ToolNode`. Durability is `sync`, the strictest; the question is its `interrupt`.
 */
import { join } from "node:path";
import type { PeerSaver } from "../peers/langgraph.ts";
import { type Errand, errands, type Outside, resultOf } from "./external-world.ts";
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

/** What this program uses of LangGraph.js. */
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
  { kind, entry, outside }: { readonly kind: PeerId; readonly entry: string; readonly outside: Outside },
): Promise<Program> {
  const langgraph = (await import(entry)) as LangGraph;
  const saver = langgraph.SqliteSaver.fromConnString(join(folder, "runs.db"));
  addPoints(saver, outside);
  const graph = kind === "tasks" ? withTasks(langgraph, saver, outside) : withToolNode(langgraph, saver, outside);
  return {
    goOn: async (thread) => {
      const config = { configurable: { thread_id: thread }, durability: "sync" };
      const { createdAt, tasks, values } = await graph.getState(config);
      // Not `next`: it is empty, too, when all tasks have ended and the checkpoint after them is not written.
      if (createdAt !== undefined && tasks.length === 0) return stopOf(values, tasks);
      const waits = tasks.some(({ interrupts }) => interrupts.length > 0);
      const input = waits ? new langgraph.Command({ resume: { ok: true } }) : null;
      await graph.invoke(createdAt === undefined ? {} : input, config);
      const after = await graph.getState(config);
      return stopOf(after.values, after.tasks);
    },
    close: () => saver.db.close(),
  };
}

/** The same points as around a commit of ours: before a write, and when it is in the file. */
function addPoints(saver: SaverWithWrites, outside: Outside): void {
  for (const name of ["put", "putWrites"] as const) {
    const plain = saver[name].bind(saver);
    saver[name] = async (...args) => {
      outside.point();
      const saved = await plain(...args);
      outside.point();
      return saved;
    };
  }
}

function withTasks(langgraph: LangGraph, checkpointer: PeerSaver, outside: Outside): PeerProgramGraph {
  const { Annotation, StateGraph, interrupt, task } = langgraph;
  const run = task("run", async (which: Errand, thread: string) => {
    await outside.run(thread, which);
    return resultOf(which);
  });
  const all = async (wanted: readonly Errand[], config: Config): Promise<Values> => ({
    results: await Promise.all(wanted.map((which) => run(which, config.configurable.thread_id))),
  });
  const results = Annotation({
    default: () => [],
    reducer: (before: readonly string[], more: readonly string[]) => [...before, ...more],
  });
  return new StateGraph(Annotation.Root({ results, verdict: Annotation() }))
    .addNode("plan", () => ({}))
    .addNode("prepare", (_state: unknown, config: Config) => all(errands.before, config))
    .addNode("ask", () => ({ verdict: interrupt({ question: "approve" }).ok ? "yes" : "no" }))
    .addNode("settle", (_state: unknown, config: Config) => all(errands.after, config))
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

function withToolNode(langgraph: LangGraph, checkpointer: PeerSaver, outside: Outside): PeerProgramGraph {
  const { AIMessage, Annotation, MessagesAnnotation, StateGraph, ToolNode, interrupt, tool } = langgraph;
  const run = tool(
    ({ errand }: { readonly errand: Errand }, config: Config) => outside.run(config.configurable.thread_id, errand),
    {
      name: "run",
      description: "Run an errand.",
      schema: { type: "object", properties: { errand: { type: "string" } }, required: ["errand"] },
    },
  );
  const callsFor = (id: string, wanted: readonly Errand[]): unknown =>
    new AIMessage({
      id,
      content: "",
      tool_calls: wanted.map((which) => ({ id: which, name: "run", args: { errand: which } })),
    });
  return new StateGraph(Annotation.Root({ ...MessagesAnnotation.spec, verdict: Annotation() }))
    .addNode("plan", () => ({ messages: [callsFor("plan", errands.before)] }))
    .addNode("prepare", new ToolNode([run]))
    .addNode("ask", () => {
      const verdict = interrupt({ question: "approve" }).ok ? "yes" : "no";
      return { verdict, messages: [callsFor("settle", errands.after)] };
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

function stopOf({ results, messages = [], verdict = "" }: Values, tasks: readonly unknown[]): Stop {
  if (tasks.length > 0) return { kind: "waiting" };
  const said = messages.flatMap(({ content, tool_call_id }) => (tool_call_id === undefined ? [] : [String(content)]));
  return { kind: "done", results: results ?? said, verdict };
}
