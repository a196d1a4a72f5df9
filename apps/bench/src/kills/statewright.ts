/** The run that is killed, in Statewright: a tool node before the question, another after it. */
import { join } from "node:path";
import { crashPoints } from "@statewright/testing";
import {
  defineGraph,
  defineState,
  defineTool,
  END,
  getState,
  goto,
  gotos,
  isStatewrightError,
  type Message,
  messages,
  type OpenInterrupt,
  resume,
  run,
  START,
  sqliteStore,
  type ToolRuntime,
  toolNode,
} from "statewright";
import * as z from "zod";
import { type Errand, errands, type Outside, resultOf } from "./external-world.ts";
import type { OursId, Program, Stop } from "./program.ts";

const errand = z.enum(["weigh", "book", "reserve", "charge", "post"]);

interface Args {
  readonly errand: Errand;
}

export function openStatewright(folder: string, kind: OursId, outside: Outside): Program {
  const graph = graphOf(kind, outside);
  const store = crashPoints(sqliteStore(join(folder, "runs.db")), outside.point);
  return {
    goOn: async (thread) => {
      if ((await store.head(thread)) === undefined) return stopOf(await run(graph, { store, thread }).result);
      const { interrupts } = await getState(graph, { store, thread });
      const answers = Object.fromEntries(
        interrupts.map((question) => [question.id, answer(question, thread, outside)]),
      );
      return stopOf(await resume(graph, { store, thread, answers }).result);
    },
    close: () => store.close(),
  };
}

/** Why a second answer was refused. */
export function refusalOf(error: unknown): string | undefined {
  return isStatewrightError(error) ? error.code : undefined;
}

function graphOf(kind: OursId, outside: Outside) {
  const options = {
    name: "run",
    description: "Run an errand.",
    input: z.object({ errand }),
    run: ({ errand: which }: Args, { idempotencyKey, run: { thread } }: ToolRuntime<unknown, unknown>) =>
      outside.run(thread, which, idempotencyKey),
  } as const;
  const reconcile = ({ errand: which }: Args): string | undefined =>
    outside.happened(which) ? resultOf(which) : undefined;
  const tool =
    kind === "idempotent"
      ? defineTool({ ...options, effect: "idempotent" })
      : defineTool({ ...options, effect: "once", ...(kind === "reconciled" && { reconcile }) });
  return defineGraph({
    name: "errands",
    state: defineState({ messages: messages(), verdict: z.string().default("") }),
    interrupts: { approve: z.object({ ok: z.boolean() }) },
  })
    .nodes({
      plan: () => ({ messages: [callsFor("plan", errands.before)] }),
      prepare: toolNode({ tools: [tool] }),
      ask: async (_state, { interrupt }) => {
        const { ok } = await interrupt("approve");
        return goto("settle", { verdict: ok ? "yes" : "no", messages: [callsFor("settle", errands.after)] });
      },
      settle: toolNode({ tools: [tool] }),
      end: () => undefined,
    })
    .edges({
      [START]: "plan",
      plan: "prepare",
      prepare: "ask",
      ask: gotos("settle"),
      settle: "end",
      end: END,
    });
}

function callsFor(id: string, wanted: readonly Errand[]): Message {
  const content = wanted.map((which) => ({ type: "call", id: which, name: "run", args: { errand: which } }) as const);
  return { role: "assistant", id, content, finish: "calls" };
}

function answer({ key, payload }: OpenInterrupt, thread: string, outside: Outside): object {
  if (key !== "in_doubt") return { ok: true };
  const { args } = payload as { readonly args: { readonly errand: Errand } };
  outside.asked(thread, args.errand);
  return outside.happened(args.errand) ? { happened: true, content: resultOf(args.errand) } : { happened: false };
}

function stopOf({ status, state }: { readonly status: string; readonly state: object }): Stop {
  if (status === "waiting") return { kind: "waiting" };
  if (status !== "done") throw new Error(`the run came to ${status}`);
  const { messages: said, verdict } = state as { readonly messages: readonly Message[]; readonly verdict: string };
  const results = said.flatMap((message) =>
    message.role === "tool" ? message.content.map((block) => (block.type === "text" ? block.text : block.type)) : [],
  );
  return { kind: "done", results, verdict };
}
