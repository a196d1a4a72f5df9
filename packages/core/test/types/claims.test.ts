/** Node declarations: declared interrupts and declared writes. */
import { expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  END,
  edit,
  fanOut,
  goto,
  inputNode,
  START,
  send,
  subgraph,
} from "../../src/index.ts";

const State = defineState({
  files: z.array(z.string()).default([]),
  verdict: z.string().default(""),
  log: channel.list(z.string()),
});
const start = defineGraph({ name: "claims", state: State, interrupts: { approve: z.boolean(), note: z.string() } });
const inner = defineGraph({ name: "inner", state: State })
  .nodes({ a: () => undefined })
  .edges({ [START]: "a", a: END });

function claims() {
  return start
    .nodes({
      a: {
        interrupts: ["approve"],
        writes: ["verdict", "log"],
        run: async (state, { interrupt }) => {
          expectTypeOf(state.files).toEqualTypeOf<readonly string[]>();
          const ok = await interrupt("approve");
          expectTypeOf(ok).toEqualTypeOf<boolean>();
          return ok ? [goto("b", { verdict: "yes" }), send("each", "x")] : { log: ["no"] };
        },
        onError: (_state, { error }) => ({ log: [error.message] }),
      },
      b: { interrupts: [], writes: [], run: () => undefined },
      d: { writes: ["log"], run: (state) => (state.verdict === "" ? goto("b") : goto("c", { log: ["d"] })) },
      c: { writes: ["files"], run: () => edit((draft) => void draft.files.push("c")) },
      call: {
        writes: ["log"],
        run: subgraph(inner, { input: (state) => ({ files: state.files }), output: (result) => ({ log: result.log }) }),
      },
      each: inputNode(
        z.string(),
        async (state, { input, interrupt }) => {
          expectTypeOf(state.verdict).toEqualTypeOf<string>();
          expectTypeOf(input).toEqualTypeOf<string>();
          return { log: [input, await interrupt("note")] };
        },
        { interrupts: ["note"], writes: ["log"] },
      ),
    })
    .edges({
      [START]: "a",
      a: commandTargets("b", "each"),
      b: "c",
      c: fanOut("each", (state) => state.files, { otherwise: "call" }),
      call: END,
      each: "d",
      d: commandTargets("b", "c"),
    });
}

function wrongClaims() {
  // @ts-expect-error a question that the graph does not declare
  start.nodes({ a: { interrupts: ["aprove"], run: () => undefined } });
  // @ts-expect-error a channel that the state does not have
  start.nodes({ a: { writes: ["verdct"], run: () => undefined } });
  // @ts-expect-error returns a channel that its writes do not list: log
  start.nodes({ a: { writes: ["verdict"], run: () => ({ verdict: "x", log: ["x"] }) } });
  // @ts-expect-error an update beside a command counts too
  start.nodes({ a: { writes: ["verdict"], run: () => goto("a", { log: ["x"] }) } });
  // @ts-expect-error what its error handler writes counts too
  start.nodes({ a: { writes: ["verdict"], run: () => undefined, onError: () => ({ log: ["x"] }) } });
  // @ts-expect-error what the output of a subgraph gives counts too
  start.nodes({ a: { writes: ["verdict"], run: subgraph(inner, { input: () => ({}), output: () => ({ log: [] }) }) } });
  // @ts-expect-error what an input node returns counts too
  start.nodes({ a: inputNode(z.string(), () => ({ log: ["x"] }), { writes: ["verdict"] }) });
  // @ts-expect-error an input node asks what the graph does not declare
  start.nodes({ a: inputNode(z.string(), () => undefined, { interrupts: ["aprove"] }) });
  // @ts-expect-error an input node writes what the state does not have
  start.nodes({ a: inputNode(z.string(), () => undefined, { writes: ["verdct"] }) });
  // @ts-expect-error a graph without questions
  defineGraph({ name: "mute", state: State }).nodes({ a: { interrupts: ["approve"], run: () => undefined } });
  start.nodes({
    a: {
      interrupts: ["approve"],
      // @ts-expect-error a payload or answer of a question that the graph does not declare
      run: async (_state, { interrupt }) => void (await interrupt("who")),
    },
  });
}

test("interrupts and writes of a node are typed by its graph, and its return by its declared writes (types)", () => {
  expectTypeOf(claims).toBeFunction();
  expectTypeOf(wrongClaims).toBeFunction();
});
