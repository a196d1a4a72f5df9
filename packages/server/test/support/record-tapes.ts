/** Event tapes of real runs on scripted models: one tape for each thing that a run can do. */
import { agentTool, createAgent } from "@statewright/agent";
import { confirmTools } from "@statewright/agent/middleware";
import {
  defineGraph,
  defineState,
  defineTool,
  END,
  fork,
  type MemoryStore,
  memoryStore,
  type RunEvent,
  type RunHandle,
  recover,
  resume,
  run,
  START,
} from "@statewright/core";
import {
  call,
  failWith,
  say,
  scriptedModel,
  stall,
  think,
  type VirtualClock,
  virtualClock,
} from "@statewright/testing";
import * as z from "zod";
import { findFailureTitle } from "../../src/service/failure-titles.ts";

/** Events of a thread, over all its runs. */
export interface Tape {
  readonly name: string;
  readonly graph: string;
  readonly events: readonly RunEvent[];
}

/** Tools of the assistants: one that runs at once, and one that a person confirms. */
const tools = [
  defineTool({
    name: "look",
    description: "Looks up a word.",
    input: z.object({ word: z.string() }),
    effect: "pure",
    run: ({ word }) => `${word}: found`,
  }),
  defineTool({
    name: "pay",
    description: "Pays an amount.",
    input: z.object({ amount: z.number() }),
    safety: { confirm: "always" },
    run: ({ amount }) => `paid ${amount}`,
  }),
];

type Script = Parameters<typeof scriptedModel>[0];

function createAssistant(script: Script) {
  const retry = { attempts: 2, initialMs: 0, jitter: 0 };
  const model = scriptedModel(script);
  return createAgent({ name: "assistant", model, tools, middleware: [confirmTools()], retry });
}

const question = { messages: [{ role: "user", id: "u1", content: [{ type: "text", text: "Hello" }] }] } as const;

type AnyHandle = Pick<RunHandle<unknown>, "on" | "result">;

/** Failures as callers see them: the code and its title. */
function hideFailure(event: RunEvent): RunEvent {
  if (!("error" in event) || typeof event.error === "string") return event;
  const { code = "internal" } = event.error;
  const error = { name: "StatewrightError", message: findFailureTitle(code) ?? code, code };
  return event.type === "run.failed" || event.type === "task.failed" ? { ...event, error } : event;
}

/** Thread of a tape. */
class Scene {
  readonly world: VirtualClock = virtualClock({ waitsForWork: false });
  readonly thread = "t1";
  readonly events: RunEvent[] = [];
  store: MemoryStore = memoryStore();

  get place() {
    const { store, world, thread } = this;
    return { store, world, thread };
  }

  /** Adds the events of a run until it rests. */
  async record(handle: AnyHandle): Promise<void> {
    this.follow(handle);
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    const over = handle.result.then(end, end);
    while (!isOver) await this.world.advance(1_000);
    await over;
  }

  /** Adds the events of a run that does not rest by itself. */
  follow(handle: Pick<AnyHandle, "on">): void {
    handle.on((event) => this.events.push(hideFailure(event)));
  }

  async recordRun(script: Script): Promise<void> {
    await this.record(run(createAssistant(script), { ...this.place, input: question }));
  }

  /** Dies as by SIGKILL; the next process works on the same threads. */
  crash(): void {
    const next = this.store.peer();
    this.store.crash();
    this.store = next;
  }
}

const twoApprovals = [call("pay", { amount: 1 }), call("pay", { amount: 2 })];

const scenes: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  text: (scene) => scene.recordRun([[think("Greet first."), say("Hello there, friend.")]]),
  tool: (scene) => scene.recordRun([[say("Let me look."), call("look", { word: "tea" })], say("Tea is found.")]),
  "parallel-tools": (scene) =>
    scene.recordRun([[call("look", { word: "tea" }), call("look", { word: "milk" })], say("Both are found.")]),
  "sub-agent": async (scene) => {
    const researcher = createAgent({ name: "researcher", model: scriptedModel([say("ants: found")]) });
    const model = scriptedModel([call("researcher", { task: "ants" }), say("Done.")]);
    const boss = createAgent({ name: "boss", model, tools: [agentTool(researcher, { description: "Researches." })] });
    await scene.record(run(boss, { ...scene.place, input: question }));
  },
  retraction: (scene) =>
    scene.recordRun([failWith({ status: 503 }, { after: say("one two three") }), say("The right answer.")]),
  waiting: async (scene) => {
    await scene.recordRun([twoApprovals]);
    const assistant = createAssistant([twoApprovals, say("Paid one of two.")]);
    const answers = await listAnswers(scene);
    await scene.record(resume(assistant, { ...scene.place, answers }));
  },
  fork: async (scene) => {
    const assistant = createAssistant([say("First answer."), say("Second answer.")]);
    await scene.record(run(assistant, { ...scene.place, input: question }));
    const at = scene.events.find((event) => event.type === "step.committed")?.checkpoint ?? 0;
    await fork(assistant, { ...scene.place, at, name: "b2", moveHead: true });
    await scene.record(resume(assistant, { ...scene.place, branch: "b2" }));
  },
  crash: async (scene) => {
    const entry = stall({ after: say("Half an answer") });
    scene.follow(run(createAssistant([entry]), { ...scene.place, input: question }));
    await scene.world.waitUntilIdle();
    scene.crash();
    const { store, world } = scene;
    for (const handle of await recover({ store, world, graphs: [createAssistant([say("The whole answer.")])] }))
      await scene.record(handle);
  },
  cancel: async (scene) => {
    const handle = run(createAssistant([stall({ after: say("Never to") })]), { ...scene.place, input: question });
    scene.follow(handle);
    await scene.world.waitUntilIdle();
    handle.cancel("stop");
    await handle.result.catch(() => undefined);
  },
  failure: async (scene) => {
    const graph = defineGraph({ name: "assistant", state: defineState({ note: z.string().default("") }) })
      .nodes({
        work: () => {
          throw new Error("secret path /app/x");
        },
      })
      .edges({ [START]: "work", work: END });
    await scene.record(run(graph, { ...scene.place, input: { note: "n" } }));
  },
};

/** Names of all tapes. */
export const tapeNames: readonly string[] = Object.keys(scenes);

/** Answers the first approval with yes and the second with no. */
async function listAnswers({ events }: Scene): Promise<Record<string, unknown>> {
  const waiting = events.findLast((event) => event.type === "run.waiting");
  const ids = waiting?.type === "run.waiting" ? waiting.interrupts.map(({ id }) => id) : [];
  return Object.fromEntries(ids.map((id, index) => [id, index === 0 ? true : { approved: false, reason: "too much" }]));
}

/** Records a tape. The same name gives the same tape on every machine. */
export async function recordTape(name: string): Promise<Tape> {
  const scene = new Scene();
  await scenes[name]?.(scene);
  const started = scene.events.find((event) => event.type === "run.started");
  return { name, graph: started?.type === "run.started" ? started.graph : "", events: scene.events };
}
