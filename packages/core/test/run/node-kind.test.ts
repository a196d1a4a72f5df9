/** New node kinds outside of the engine: the kind interface answers every question of the engine. */
import { expect, test } from "vitest";
import * as z from "zod";
import { functionKind } from "../../src/compile/kinds/function.ts";
import { nodeKind } from "../../src/compile/kinds/kinds.ts";
import type { NodeKind } from "../../src/define/graph.ts";
import {
  channel,
  checkGraph,
  defineGraph,
  defineState,
  END,
  getState,
  memoryStore,
  resume,
  run,
  START,
} from "../../src/index.ts";
import { describeGraph } from "../../src/inspect.ts";

const S = defineState({ log: channel.list(z.string()) });

/** Kind of a node with a constant update. */
function createConstantKind(update: object): NodeKind {
  return {
    ...functionKind,
    execute: (engine, task) => engine.runBody(task, () => update),
    getInterruptObstacle: () => "is a constant",
    canRecord: ({ kind }) => kind === "task",
    findProblems: ({ name: node }, { state: { channels } }) =>
      Object.keys(update).flatMap((oneChannel) =>
        Object.hasOwn(channels, oneChannel)
          ? []
          : [
              {
                code: "unknown_channel",
                node,
                message: `the constant "${node}" writes "${oneChannel}"`,
                hint: "fix it",
              },
            ],
      ),
    outline: ({ name }, path) => ({
      nodes: [{ id: `${path}value`, name: `${name} = ${JSON.stringify(update)}`, kind: "body", deferred: false }],
      edges: [],
    }),
  };
}

/** Kind of a node that waits once, across resumes, before its body runs. */
const delayKind: NodeKind = {
  ...functionKind,
  execute: (engine, task) =>
    engine.runBody(task, async (state, runtime) => {
      const { step }: { step: (key: string, work: () => unknown) => Promise<unknown> } = runtime;
      await step("delay", () => undefined);
      return task.node.body(state, runtime);
    }),
};

function constant(update: object): () => object {
  return { [nodeKind]: createConstantKind(update) } as never;
}

function delay(run: () => object): () => object {
  return { [nodeKind]: delayKind, run } as never;
}

test("a constant and a delayed node run, by kinds that are defined outside of the engine", async () => {
  const graph = defineGraph({ name: "new-kinds", state: S })
    .nodes({ first: constant({ log: ["constant"] }), second: delay(() => ({ log: ["delayed"] })) })
    .edges({ [START]: "first", first: "second", second: END });
  const result = await run(graph, { input: {} }).result;
  expect(result).toMatchObject({ status: "done", state: { log: ["constant", "delayed"] } });
  expect(checkGraph(graph).violations).toEqual([]);
  expect(describeGraph(graph).nodes.find(({ name }) => name === "first")?.inside?.nodes).toMatchObject([
    { name: 'first = {"log":["constant"]}' },
  ]);
});

test("a failed node of a new kind is saved and continues in a resume", async () => {
  let fails = true;
  const graph = defineGraph({ name: "new-kind-resumed", state: S })
    .nodes({
      first: constant({ log: ["constant"] }),
      second: delay(() => {
        if (fails) throw new Error("not yet");
        return { log: ["delayed"] };
      }),
    })
    .edges({ [START]: "first", first: "second", second: END });
  const store = memoryStore();
  await expect(run(graph, { input: {}, store, thread: "t" }).result).rejects.toThrow("not yet");
  expect(await getState(graph, { store, thread: "t" })).toMatchObject({ state: { log: ["constant"] } });
  fails = false;
  expect(await resume(graph, { store, thread: "t" }).result).toMatchObject({
    status: "done",
    state: { log: ["constant", "delayed"] },
  });
});

test("the checks of a new kind, and of its policy, are reported with the definition", () => {
  const define = (): unknown =>
    defineGraph({ name: "wrong-kind", state: S })
      .nodes({ first: constant({ lgo: ["constant"] }) })
      .edges({ [START]: "first", first: END });
  expect(define).toThrow('the constant "first" writes "lgo"');
  expect(() =>
    defineGraph({ name: "wrong-policy", state: S })
      .nodes({ first: { ...(constant({}) as object), timeoutMs: -1 } as never })
      .edges({ [START]: "first", first: END } as never),
  ).toThrow("timeoutMs");
});
