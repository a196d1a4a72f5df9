/** The documented programs about composed graphs compile without a cast and run. */
import {
  channel,
  defineGraph,
  defineState,
  END,
  edit,
  fanOut,
  inputNode,
  memoryStore,
  resume,
  route,
  run,
  START,
  subgraph,
} from "statewright";
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";

const Finding = z.object({ file: z.string(), severe: z.boolean() });

/** Reviews a folder: a bad file is severe and fixed in the second round. Files are inspected in parallel. */
function getReview(changed: readonly string[]) {
  const inspected: string[] = [];
  let [rounds, atOnce, most] = [0, 0, 0];
  const changedFiles = async () => [...changed];
  const inspectFile = async (file: string) => {
    inspected.push(file);
    most = Math.max(most, ++atOnce);
    await new Promise((resolve) => setImmediate(resolve));
    atOnce -= 1;
    return inspected.filter((each) => each === file).length === 1 ? [{ file, severe: file.startsWith("bad") }] : [];
  };
  const Review = defineState({
    files: z.array(z.string()).default([]),
    findings: channel.list(Finding),
    verdict: z.enum(["ship", "fix"]).nullable().default(null),
  });

  const review = defineGraph({ name: "review", version: 1, state: Review })
    .nodes({
      collect: async () => ({ files: await changedFiles() }),
      inspect: inputNode(z.string(), async (_state, { input }) => ({ findings: await inspectFile(input) })),
      judge: (state) => ({ verdict: state.findings.some((f) => f.severe) && rounds++ === 0 ? "fix" : "ship" }),
      fix: (state) =>
        edit((draft) => {
          draft.files = state.findings.map((f) => f.file);
        }),
    })
    .edges({
      [START]: "collect",
      collect: fanOut("inspect", (state) => state.files, { otherwise: "judge" }),
      inspect: "judge",
      judge: route(["fix", END], (state) => (state.verdict === "fix" ? "fix" : END)),
      fix: "collect",
    });
  return { review, inspected, most: () => most };
}

test("a graph with parallel nodes, a route and a loop compiles without a cast and runs [K7]", async () => {
  const { review, inspected, most } = getReview(["bad.ts", "good.ts"]);
  const handle = run(review, {});
  const steps: string[] = [];
  handle.on((event) => {
    if (event.type === "step.committed") steps.push(event.nodes.join("+"));
  });
  const { status, state } = await handle.result;
  expectTypeOf(state.verdict).toEqualTypeOf<"ship" | "fix" | null>();
  expect(status).toBe("done");
  expect(steps.join(" ").trim()).toBe("collect inspect judge fix collect inspect judge");
  expect(most()).toBe(2);
  expect(inspected).toEqual(["bad.ts", "good.ts", "bad.ts", "good.ts"]);
  expect(state).toEqual({
    files: ["bad.ts", "good.ts"],
    findings: [
      { file: "bad.ts", severe: true },
      { file: "good.ts", severe: false },
    ],
    verdict: "ship",
  });
  const nothing = await run(getReview([]).review, {}).result;
  expect(nothing).toMatchObject({ status: "done", state: { files: [], findings: [], verdict: "ship" } });
});

test("a graph with a subgraph compiles without a cast and runs, and its interrupts include those of the subgraph [K7]", async () => {
  const researcher = defineGraph({
    name: "researcher",
    state: defineState({ topic: z.string(), notes: channel.list(z.string()) }),
    interrupts: { scope: z.object({ wide: z.boolean() }) },
  })
    .nodes({
      ask: async (state, { interrupt }) => ({
        notes: [`${state.topic}, ${(await interrupt("scope")).wide ? "wide" : "narrow"}`],
      }),
    })
    .edges({ [START]: "ask", ask: END });
  const report = defineGraph({
    name: "report",
    state: defineState({ question: z.string(), notes: channel.list(z.string()) }),
  })
    .nodes({
      research: subgraph(researcher, {
        input: (state) => ({ topic: state.question }),
        output: (result) => ({ notes: result.notes }),
      }),
    })
    .edges({ [START]: "research", research: END });
  const store = memoryStore();
  const first = await run(report, { store, thread: "t", input: { question: "bees" } }).result;
  expect(first).toMatchObject({ status: "waiting", interrupts: [{ key: "research.scope" }] });
  const answers = { "research.scope": { wide: true } };
  const { status, state } = await resume(report, { store, thread: "t", answers }).result;
  expectTypeOf(state.notes).toEqualTypeOf<readonly string[]>();
  expect([status, state]).toEqual(["done", { question: "bees", notes: ["bees, wide"] }]);
});
