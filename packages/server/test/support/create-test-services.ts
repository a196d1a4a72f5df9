/** Acts of callers over an engine with two graphs: an agent, and a graph with a private channel and a question. */
import {
  channel,
  defineGraph,
  defineState,
  END,
  type Engine,
  type EngineOptions,
  engine,
  START,
  type Store,
} from "@statewright/core";
import { onTestFinished } from "vitest";
import * as z from "zod";
import type { Caller } from "../../src/access/caller.ts";
import { type CallerService, createServices, type ServiceOptions, type Services } from "../../src/index.ts";
import { createTestGraphs } from "./test-graphs.ts";

export const ann: Caller = { id: "ann", tenant: "acme" };
export const bob: Caller = { id: "bob", tenant: "globex" };

/** Signal that never fires. */
export const never: AbortSignal = new AbortController().signal;

const state = defineState({
  topic: z.string().default(""),
  notes: channel.list(z.string()),
  secretPlan: z.string().default(""),
});

/**
 * Graph that writes a note, asks whether it is good, and ends. The topic `quick` asks nothing, and `fail` fails in the
 * first node.
 */
export const review = defineGraph({
  name: "poem",
  state,
  private: ["secretPlan"],
  interrupts: { approve: z.object({ approved: z.boolean() }) },
})
  .nodes({
    write: ({ topic }) => {
      if (topic === "fail") throw new Error("SELECT secret FROM /var/lib/agents.db");
      return { secretPlan: `the plan about ${topic}`, notes: [`wrote about ${topic}`] };
    },
    ask: async ({ topic }, { interrupt }) => {
      if (topic === "quick") return { notes: ["no question"] };
      const { approved } = await interrupt("approve", { payload: { question: `Is ${topic} good?` } });
      return { notes: [approved ? "approved" : "refused"] };
    },
  })
  .edges({ [START]: "write", write: "ask", ask: END });

/** Services with their engine. */
export interface TestServices {
  readonly host: Engine;
  readonly services: Services;
  /** Acts of `ann` through the protocol `native`. */
  readonly service: CallerService;
}

/** Options of the services and of their engine. */
export interface TestServiceOptions extends Omit<ServiceOptions, "engine"> {
  readonly engine?: Omit<EngineOptions, "store" | "graphs">;
  /** Set for an engine whose store crashes: it is not stopped. */
  readonly dies?: boolean;
}

/** Creates services; the engine is stopped after the test. */
export function createTestServices(
  store: Store,
  { engine: more, dies = false, ...options }: TestServiceOptions = {},
): TestServices {
  const host = engine({ store, graphs: [review, ...createTestGraphs().graphs], ...more });
  if (!dies) onTestFinished(() => host.stop({ now: true }));
  const services = createServices({ engine: host, ...options });
  return { host, services, service: services.forCaller(ann, "native") };
}

/** Starts a run of the graph `poem` that waits for an answer; returns the id of its interrupt. */
export async function startWaiting(
  service: CallerService,
  thread: string,
): Promise<{ run: string; interrupt: string }> {
  const { run } = await service.startRun(thread, { graph: "poem", input: { topic: "boats" } });
  await service.waitForRun(run.id, never);
  const [interrupt] = (await service.getState(thread)).interrupts;
  return { run: run.id, interrupt: interrupt?.id ?? "" };
}
