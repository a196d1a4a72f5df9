/** The killed run in Statewright: one tool node before the approval, and one after. */
import { join } from "node:path";
import { crashPoints } from "@statewright/testing";
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  defineTool,
  END,
  getState,
  goto,
  isStatewrightError,
  type Message,
  type OpenInterrupt,
  resume,
  run,
  START,
  sqliteStore,
  type ToolRuntime,
  toolNode,
} from "statewright";
import * as z from "zod";
import { type Action, actions, type ExternalWorld, getResult } from "./external-world.ts";
import type { OwnId, Program, Stop } from "./program.ts";

const actionSchema = z.enum(["weigh", "book", "reserve", "charge", "post"]);

interface Args {
  readonly action: Action;
}

export function openStatewright(folder: string, kind: OwnId, world: ExternalWorld): Program {
  const graph = createGraph(kind, world);
  const store = crashPoints(sqliteStore(join(folder, "runs.db")), world.passKillPoint);
  return {
    runToStop: async (thread) => {
      if ((await store.head(thread)) === undefined) return toStop(await run(graph, { store, thread }).result);
      const { interrupts } = await getState(graph, { store, thread });
      const answers = Object.fromEntries(
        interrupts.map((openInterrupt) => [openInterrupt.id, answerInterrupt(openInterrupt, thread, world)]),
      );
      return toStop(await resume(graph, { store, thread, answers }).result);
    },
    close: () => store.close(),
  };
}

/** Returns the code of a StatewrightError, as the outcome of a refused resume. */
export function getErrorCode(error: unknown): string | undefined {
  return isStatewrightError(error) ? error.code : undefined;
}

function createGraph(kind: OwnId, world: ExternalWorld) {
  const options = {
    name: "run",
    description: "Run an action.",
    input: z.object({ action: actionSchema }),
    run: ({ action }: Args, { idempotencyKey, run: { thread } }: ToolRuntime<unknown, unknown>) =>
      world.runAction(thread, action, idempotencyKey),
  } as const;
  const reconcile = ({ action }: Args): string | undefined =>
    world.hasHappened(action) ? getResult(action) : undefined;
  const tool =
    kind === "idempotent"
      ? defineTool({ ...options, effect: "idempotent" })
      : defineTool({ ...options, effect: "once", ...(kind === "reconciled" && { reconcile }) });
  return defineGraph({
    name: "actions",
    state: defineState({ messages: channel.messages(), verdict: z.string().default("") }),
    interrupts: { approve: z.object({ ok: z.boolean() }) },
  })
    .nodes({
      plan: () => ({ messages: [createCallMessage("plan", actions.before)] }),
      prepare: toolNode({ tools: [tool] }),
      ask: async (_state, { interrupt }) => {
        const { ok } = await interrupt("approve");
        return goto("settle", { verdict: ok ? "yes" : "no", messages: [createCallMessage("settle", actions.after)] });
      },
      settle: toolNode({ tools: [tool] }),
      end: () => undefined,
    })
    .edges({
      [START]: "plan",
      plan: "prepare",
      prepare: "ask",
      ask: commandTargets("settle"),
      settle: "end",
      end: END,
    });
}

function createCallMessage(id: string, selected: readonly Action[]): Message {
  const content = selected.map((action) => ({ type: "call", id: action, name: "run", args: { action } }) as const);
  return { role: "assistant", id, content, finish: "calls" };
}

function answerInterrupt({ key, payload }: OpenInterrupt, thread: string, world: ExternalWorld): object {
  if (key !== "in_doubt") return { ok: true };
  const { args } = payload as { readonly args: { readonly action: Action } };
  world.logInterrupt(thread, args.action);
  return world.hasHappened(args.action) ? { happened: true, content: getResult(args.action) } : { happened: false };
}

function toStop({ status, state }: { readonly status: string; readonly state: object }): Stop {
  if (status === "waiting") return { kind: "waiting" };
  if (status !== "done") throw new Error(`expected a run that is waiting or done, got status ${status}`);
  const { messages: transcript, verdict } = state as {
    readonly messages: readonly Message[];
    readonly verdict: string;
  };
  const results = transcript.flatMap((message) =>
    message.role === "tool" ? message.content.map((block) => (block.type === "text" ? block.text : block.type)) : [],
  );
  return { kind: "done", results, verdict };
}
