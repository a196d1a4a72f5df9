/**
 * Programs that do not compile. Each stands below its corrected twin, so that the one mistake is the cause. The text
 * after `@ts-expect-error` is part of the compiler message, which wrong-programs.test.ts compares. Nothing here is
 * called.
 */
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  channel,
  commandTargets,
  decide,
  defineContext,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  durableMachine,
  END,
  edit,
  fanOut,
  fork,
  getHistory,
  getState,
  goto,
  inject,
  inputNode,
  join,
  memoryStore,
  overwrite,
  resume,
  route,
  run,
  START,
  send,
  toolNode,
} from "../../src/index.ts";

/** Mistakes in the order of this file. */
export const mistakes: string[] = [];

function wrong(what: string, _program: () => unknown): void {
  mistakes.push(what);
}

const Shop = defineState({
  files: z.array(z.string()).default([]),
  verdict: z.enum(["ship", "fix"]).nullable().default(null),
  notes: channel.list(z.string()),
  total: channel.reduce(z.number().default(0), (sum, add: number) => sum + add),
  stock: channel.record(z.number()),
  hint: channel.ephemeral(z.string()),
  tree: z.object({ leaf: z.object({ size: z.number() }) }).default({ leaf: { size: 0 } }),
  messages: channel.messages(),
});
const Visit = defineContext({ user: z.string() });
const File = z.object({ file: z.string() });
const start = defineGraph({ name: "shop", state: Shop });
const each = inputNode(File, (_state, { input }) => ({ notes: [input.file] }));
const plain = start.nodes({ a: () => undefined, b: () => undefined, each });
const rest = { b: END, each: END } as const;
const commands = start.nodes({ a: () => goto("b"), b: () => undefined, each });
const Pay = defineState({ amount: z.number(), note: z.string().optional() });
const pay = defineGraph({
  name: "pay",
  state: Pay,
  context: Visit,
  interrupts: {
    name: z.string(),
    approve: { answer: z.object({ ok: z.boolean() }), payload: z.object({ cents: z.number() }) },
  },
});
const paid = pay.nodes({ pay: () => undefined }).edges({ [START]: "pay", pay: END });
const store = memoryStore();
const thread = "t";
const context = { user: "ann" };
const input = { amount: 1 };
const refund = defineTool({
  name: "refund",
  description: "Return money.",
  input: z.object({ cents: z.number() }),
  inject: { user: Visit.from((visit) => visit.user), files: Shop.from((state) => state.files) },
  run: ({ cents }, { injected }) => `${cents} for ${injected.user}`,
});

// Where control goes.

wrong("an edge to a node that is not there", () => {
  plain.edges({ [START]: "a", a: "b", ...rest });
  // @ts-expect-error Type '"c"' is not assignable to type '"__end__" | "a" | "b"'.
  plain.edges({ [START]: "a", a: "c", ...rest });
});
wrong("a node with the name of a state of the machine", () => {
  start.nodes({ a: () => undefined });
  // @ts-expect-error is a reserved name, use another name for the node: done
  start.nodes({ a: () => undefined, done: () => undefined });
});
wrong("one of several edges to a node that is not there", () => {
  plain.edges({ [START]: ["a", "b"], a: END, ...rest });
  // @ts-expect-error Type '"c"' is not assignable to type '"__end__" | "a" | "b"'
  plain.edges({ [START]: ["a", "c"], a: END, ...rest });
});
wrong("an edge from a node that is not there", () => {
  plain.edges({ [START]: "a", a: END, b: END, each: END });
  // @ts-expect-error Type '"__end__"' is not assignable to type '"there is no node c"'.
  plain.edges({ [START]: "a", a: END, b: END, each: END, c: END });
});
wrong("a graph without a beginning", () => {
  plain.edges({ [START]: "a", a: END, ...rest });
  // @ts-expect-error is not assignable to parameter of type '"add an edge for START"'
  plain.edges({ a: END, ...rest });
});
wrong("a node without an edge", () => {
  plain.edges({ [START]: "a", a: "b", b: END, each: END });
  // @ts-expect-error is not assignable to parameter of type '"add an edge for the node b"'
  plain.edges({ [START]: "a", a: "b", each: END });
});
wrong("an edge to an input node, which takes an input", () => {
  plain.edges({ [START]: "a", a: "b", ...rest });
  // @ts-expect-error Type '"each"' is not assignable to type '"the node each takes an input: use fanOut"'.
  plain.edges({ [START]: "a", a: "each", ...rest });
});
wrong("a graph that begins with an input node", () => {
  plain.edges({ [START]: "a", a: END, ...rest });
  // @ts-expect-error is not assignable to type '"the node each takes an input: use fanOut"'
  plain.edges({ [START]: "each", a: END, ...rest });
});
wrong("a route to a node that is not there", () => {
  plain.edges({ [START]: "a", a: route(["b", END], () => "b"), ...rest });
  // @ts-expect-error is not assignable to type '"there is no node c"'
  plain.edges({ [START]: "a", a: route(["c", END], () => "c"), ...rest });
});
wrong("a route that chooses what it does not declare", () => {
  plain.edges({ [START]: "a", a: route(["b", END], () => "b"), ...rest });
  // @ts-expect-error Type '"a"' is not assignable to type '"__end__" | "b"'
  plain.edges({ [START]: "a", a: route(["b", END], () => "a"), ...rest });
});
wrong("a route that chooses several where it may choose one", () => {
  plain.edges({ [START]: "a", a: route(["a", "b"], () => ["a", "b"], { many: true }), ...rest });
  // @ts-expect-error Type 'readonly ["a", "b"]' is not assignable to type '"a" | "b"'
  plain.edges({ [START]: "a", a: route(["a", "b"], () => ["a", "b"]), ...rest });
});
wrong("a route that compares with a value that cannot be", () => {
  plain.edges({ [START]: "a", a: route(["b", END], (state) => (state.verdict === "fix" ? "b" : END)), ...rest });
  // @ts-expect-error the types '"fix" | "ship" | null' and '"fixed"' have no overlap
  plain.edges({ [START]: "a", a: route(["b", END], (state) => (state.verdict === "fixed" ? "b" : END)), ...rest });
});
wrong("a route that reads a channel that is not there", () => {
  plain.edges({ [START]: "a", a: route(["b", END], (state) => (state.verdict ? "b" : END)), ...rest });
  // @ts-expect-error Did you mean 'verdict'?
  plain.edges({ [START]: "a", a: route(["b", END], (state) => (state.verdct ? "b" : END)), ...rest });
});
wrong("sends to a node that is not there", () => {
  plain.edges({ [START]: "a", a: fanOut("each", () => [{ file: "x" }]), ...rest });
  // @ts-expect-error is not assignable to type '"there is no node ech"'
  plain.edges({ [START]: "a", a: fanOut("ech", () => [{ file: "x" }]), ...rest });
});
wrong("sends to a node that takes no input", () => {
  plain.edges({ [START]: "a", a: fanOut("each", () => [{ file: "x" }]), ...rest });
  // @ts-expect-error is not assignable to type '"the node b takes no input: use route, or declare the node with inputNode"'
  plain.edges({ [START]: "a", a: fanOut("b", () => [{ file: "x" }]), ...rest });
});
wrong("sends of a wrong input", () => {
  plain.edges({ [START]: "a", a: fanOut("each", (state) => state.files.map((file) => ({ file }))), ...rest });
  // @ts-expect-error is not assignable to type 'FanOutWithInput<"each", { readonly file: string; }>'
  plain.edges({ [START]: "a", a: fanOut("each", (state) => state.files), ...rest });
});
wrong("sends that give one item instead of a list", () => {
  plain.edges({ [START]: "a", a: fanOut("each", () => [{ file: "x" }]), ...rest });
  // @ts-expect-error Type '{ file: string; }' is missing the following properties from type 'readonly
  plain.edges({ [START]: "a", a: fanOut("each", () => ({ file: "x" })), ...rest });
});
wrong("sends that lead to a node that is not there when there are none", () => {
  plain.edges({ [START]: "a", a: fanOut("each", () => [{ file: "x" }], { otherwise: "b" }), ...rest });
  // @ts-expect-error is not assignable to type '"there is no node c"'
  plain.edges({ [START]: "a", a: fanOut("each", () => [{ file: "x" }], { otherwise: "c" }), ...rest });
});
wrong("sends that lead to an input node without an input when there are none", () => {
  plain.edges({ [START]: "a", a: fanOut("each", () => [{ file: "x" }], { otherwise: END }), ...rest });
  // @ts-expect-error is not assignable to type '"the node each takes an input: use fanOut"'
  plain.edges({ [START]: "a", a: fanOut("each", () => [{ file: "x" }], { otherwise: "each" }), ...rest });
});
wrong("a join to a node that is not there", () => {
  plain.edges({ [START]: "a", a: join("b"), ...rest });
  // @ts-expect-error Type 'Join<"c">' is not assignable to type '"there is no node c"'.
  plain.edges({ [START]: "a", a: join("c"), ...rest });
});
wrong("gotos of a node that returns none", () => {
  plain.edges({ [START]: "a", a: "b", ...rest });
  // @ts-expect-error is not assignable to type '"the node returns no command: use the name of the next node, or route"'
  plain.edges({ [START]: "a", a: commandTargets("b"), ...rest });
});

// Commands.

wrong("a goto without gotos", () => {
  commands.edges({ [START]: "a", a: commandTargets("b"), ...rest });
  // @ts-expect-error Type '"b"' is not assignable to type '"the node returns a command to b: use commandTargets"'.
  commands.edges({ [START]: "a", a: "b", ...rest });
});
wrong("a goto that the edge does not list", () => {
  commands.edges({ [START]: "a", a: commandTargets("a", "b"), ...rest });
  // @ts-expect-error is not assignable to type '"the node returns a command to b: add it to commandTargets"'
  commands.edges({ [START]: "a", a: commandTargets("a"), ...rest });
});
wrong("gotos to a node that is not there", () => {
  commands.edges({ [START]: "a", a: commandTargets("b", END), ...rest });
  // @ts-expect-error Type 'CommandTargets<"b" | "c">' is not assignable to type '"there is no node c"'.
  commands.edges({ [START]: "a", a: commandTargets("b", "c"), ...rest });
});
wrong("a goto to a node that is not there", () => {
  start.nodes({ a: () => goto("b"), b: () => undefined }).edges({ [START]: "a", a: commandTargets("b"), b: END });
  // @ts-expect-error Type 'Goto<"c", never>' is not assignable to type '"there is no node c"'.
  start.nodes({ a: () => goto("c"), b: () => undefined }).edges({ [START]: "a", a: commandTargets("b"), b: END });
});
wrong("a goto to a node that takes an input", () => {
  start
    .nodes({ a: () => send("each", { file: "x" }), each })
    .edges({ [START]: "a", a: commandTargets("each"), each: END });
  // @ts-expect-error Type 'Goto<"each", never>' is not assignable to type '"the node each takes an input: use send"'.
  start.nodes({ a: () => goto("each"), each }).edges({ [START]: "a", a: commandTargets("each"), each: END });
});
wrong("a send to a node that takes no input", () => {
  start.nodes({ a: () => goto("b"), b: () => undefined }).edges({ [START]: "a", a: commandTargets("b"), b: END });
  // @ts-expect-error Type 'Send<"b", number>' is not assignable to type '"the node b takes no input: use goto"'.
  start.nodes({ a: () => send("b", 1), b: () => undefined }).edges({ [START]: "a", a: commandTargets("b"), b: END });
});
wrong("a send of a wrong input", () => {
  start
    .nodes({ a: () => send("each", { file: "x" }), each })
    .edges({ [START]: "a", a: commandTargets("each"), each: END });
  start
    // @ts-expect-error Type 'Send<"each", { flie: string; }>' is not assignable to type 'Send<"each", { readonly file: string; }>'
    .nodes({ a: () => send("each", { flie: "x" }), each })
    .edges({ [START]: "a", a: commandTargets("each"), each: END });
});

// What a node returns.

wrong("a channel that the state does not have", () => {
  start.nodes({ a: () => ({ verdict: "fix" }) });
  // @ts-expect-error Type 'string' is not assignable to type '"the state has no channel verdct"'.
  start.nodes({ a: () => ({ verdct: "fix" }) });
});
wrong("a channel that the state does not have, beside others and later", () => {
  start.nodes({ a: async () => [{ notes: ["x"] }, { notes: ["x"], files: ["x"] }] });
  // @ts-expect-error is not assignable to type 'Promise<readonly ({ readonly notes: string[]; readonly flies?: "the state has no channel flies"; } | { readonly notes: string[]; readonly flies: "the state has no channel flies"; })[]>'
  start.nodes({ a: async () => [{ notes: ["x"] }, { notes: ["x"], flies: ["x"] }] });
});
wrong("a channel that the state does not have, with a goto", () => {
  start.nodes({ a: () => goto("b", { verdict: "fix" }), b: () => undefined });
  // @ts-expect-error is not assignable to type 'GotoWithUpdate<"b", { readonly verdct: "the state has no channel verdct"; }>'
  start.nodes({ a: () => goto("b", { verdct: "fix" }), b: () => undefined });
});
wrong("a channel that the state does not have, from a node with a policy", () => {
  start.nodes({ a: { run: () => ({ verdict: "fix" }) } });
  // @ts-expect-error Type 'string' is not assignable to type '"the state has no channel verdct"'.
  start.nodes({ a: { run: () => ({ verdct: "fix" }) } });
});
wrong("a channel that the state does not have, from an input node", () => {
  start.nodes({ a: inputNode(z.string(), (_state, { input }) => ({ notes: [input] })) });
  // @ts-expect-error is not assignable to type '"the state has no channel ntoes"'
  start.nodes({ a: inputNode(z.string(), (_state, { input }) => ({ ntoes: [input] })) });
});
wrong("a value of a wrong type", () => {
  start.nodes({ a: () => ({ files: ["x"] }) });
  // @ts-expect-error Type 'number' is not assignable to type 'readonly string[]'.
  start.nodes({ a: () => ({ files: 3 }) });
});
wrong("a value of a wrong type in a node with an edge", () => {
  start.nodes({ a: () => ({ notes: ["x"] }) }).edges({ [START]: "a", a: END });
  // @ts-expect-error Type 'string' is not assignable to type '"a write to a list is a list of items: use [item]"'
  start.nodes({ a: () => ({ notes: "x" }) }).edges({ [START]: "a", a: END });
});
wrong("a value of a wrong type on one of two ways", () => {
  start.nodes({ a: (state) => (state.verdict ? { files: ["x"] } : { files: [] }) });
  // @ts-expect-error is not assignable to type '{ readonly files: string[]; } | { readonly files: readonly string[]; }'
  start.nodes({ a: (state) => (state.verdict ? { files: ["x"] } : { files: 3 }) });
});
wrong("a value that the enumeration does not have", () => {
  start.nodes({ a: () => ({ verdict: "ship" }) });
  // @ts-expect-error Type '"maybe"' is not assignable to type '"fix" | "ship" | null'.
  start.nodes({ a: () => ({ verdict: "maybe" }) });
});
wrong("one item where a list is appended", () => {
  start.nodes({ a: () => ({ notes: ["x"] }) });
  // @ts-expect-error Type 'string' is not assignable to type '"a write to a list is a list of items: use [item]"'.
  start.nodes({ a: () => ({ notes: "x" }) });
});
wrong("null for a channel that is never null", () => {
  start.nodes({ a: () => ({ files: [] }) });
  // @ts-expect-error Type 'null' is not assignable to type 'readonly string[]'.
  start.nodes({ a: () => ({ files: null }) });
});
wrong("what a reducer does not take", () => {
  start.nodes({ a: () => ({ total: 3 }) });
  // @ts-expect-error Type 'string' is not assignable to type 'number'.
  start.nodes({ a: () => ({ total: "3" }) });
});
wrong("a wrong entry of a record", () => {
  start.nodes({ a: () => ({ stock: { apple: 3, pear: undefined } }) });
  // @ts-expect-error Type 'string' is not assignable to type 'number'
  start.nodes({ a: () => ({ stock: { apple: "3" } }) });
});
wrong("a wrong overwrite", () => {
  start.nodes({ a: () => ({ notes: overwrite(["x"]) }) });
  // @ts-expect-error Type 'number' is not assignable to type 'string'
  start.nodes({ a: () => ({ notes: overwrite(["x", 3]) }) });
});
wrong("a message of a wrong shape", () => {
  start.nodes({ a: () => ({ messages: [{ role: "system", id: "1", content: "hi" }] }) });
  // @ts-expect-error Type 'string' is not assignable to type 'readonly (TextBlock | FileBlock | ImageBlock)[]'
  start.nodes({ a: () => ({ messages: [{ role: "user", id: "1", content: "hi" }] }) });
});
wrong("a text", () => {
  start.nodes({ a: () => undefined });
  // @ts-expect-error Type 'string' is not assignable to type
  start.nodes({ a: () => "done" });
});
wrong("a function", () => {
  start.nodes({ a: () => ({}) });
  // @ts-expect-error Type '() => {}' is not assignable to type '"return an update of the state, or a command such as goto(name)"'.
  start.nodes({ a: () => () => ({}) });
});

// The state and its drafts.

wrong("a node that changes a list of its state", () => {
  start.nodes({ a: (state) => ({ files: [...state.files, "x"] }) });
  // @ts-expect-error Property 'push' does not exist on type 'readonly string[]'
  start.nodes({ a: (state) => void state.files.push("x") });
});
wrong("a node that assigns deep in its state", () => {
  start.nodes({ a: (state) => ({ tree: { leaf: { size: state.tree.leaf.size + 1 } } }) });
  start.nodes({
    a: (state) => {
      // @ts-expect-error Cannot assign to 'size' because it is a read-only property
      state.tree.leaf.size = 1;
    },
  });
});
wrong("a node that reads a channel that is not there", () => {
  start.nodes({ a: (state) => ({ notes: state.files }) });
  // @ts-expect-error Did you mean 'files'?
  start.nodes({ a: (state) => ({ notes: state.flies }) });
});
wrong("a node that takes an ephemeral value for granted", () => {
  start.nodes({ a: (state) => ({ notes: [state.hint ?? ""] }) });
  // @ts-expect-error 'state.hint' is possibly 'undefined'
  start.nodes({ a: (state) => ({ notes: [state.hint.trim()] }) });
});
wrong("a recipe that writes a wrong type", () => {
  start.nodes({ a: () => edit((draft) => draft.files.push("x")) });
  // @ts-expect-error Argument of type 'number' is not assignable to parameter of type 'string'
  start.nodes({ a: () => edit((draft) => draft.files.push(3)) });
});
wrong("a recipe that writes a channel that is not there", () => {
  start.nodes({ a: () => edit((draft) => draft.files.push("x")) });
  // @ts-expect-error Did you mean 'files'?
  start.nodes({ a: () => edit((draft) => draft.flies.push("x")) });
});
wrong("an asynchronous recipe", () => {
  start.nodes({ a: () => edit((draft) => draft.files.push("x")) });
  // @ts-expect-error Type 'Promise<number>' is not assignable to type '"a recipe cannot be asynchronous"'
  start.nodes({ a: () => edit(async (draft) => draft.files.push("x")) });
});

// Questions and answers.

wrong("a question that the graph does not declare", () => {
  pay.nodes({ a: async (_state, { interrupt }) => ({ note: await interrupt("name") }) });
  // @ts-expect-error Argument of type '"nmae"' is not assignable to parameter of type '"approve" | "name"'
  pay.nodes({ a: async (_state, { interrupt }) => void (await interrupt("nmae")) });
});
wrong("a question in a graph that declares none", () => {
  start.nodes({ a: async (_state, { step }) => void (await step("name", () => 1)) });
  // @ts-expect-error is not assignable to parameter of type '"declare the interrupt in `interrupts` of defineGraph"'
  start.nodes({ a: async (_state, { interrupt }) => void (await interrupt("name")) });
});
wrong("a wrong payload", () => {
  pay.nodes({ a: async (_state, { interrupt }) => void (await interrupt("approve", { payload: { cents: 1 } })) });
  // @ts-expect-error Type 'string' is not assignable to type 'number'
  pay.nodes({ a: async (_state, { interrupt }) => void (await interrupt("approve", { payload: { cents: "1" } })) });
});
wrong("a question without the payload that it declares", () => {
  pay.nodes({ a: async (_state, { interrupt }) => void (await interrupt("approve", { payload: { cents: 1 } })) });
  // @ts-expect-error Expected 2 arguments, but got 1
  pay.nodes({ a: async (_state, { interrupt }) => void (await interrupt("approve")) });
});
wrong("an answer that is used as what it is not", () => {
  pay.nodes({ a: async (_state, { interrupt }) => ({ note: await interrupt("name") }) });
  // @ts-expect-error Type 'Promise<{ amount: string; }>' is not assignable to type 'Promise<{ readonly amount: number; }>'.
  pay.nodes({ a: async (_state, { interrupt }) => ({ amount: await interrupt("name") }) });
});
wrong("an answer of a wrong shape", () => {
  resume(paid, { store, thread, context, answers: { approve: { ok: true } } });
  // @ts-expect-error Type 'string' is not assignable to type 'boolean'
  resume(paid, { store, thread, context, answers: { approve: { ok: "yes" } } });
});
wrong("an answer under a misspelt key", () => {
  resume(paid, { store, thread, context, answers: { approve: { ok: true }, "0:0:approve": 1 } });
  // @ts-expect-error Did you mean to write 'approve'?
  resume(paid, { store, thread, context, answers: { aprove: { ok: true } } });
});
wrong("an answer without a key", () => {
  resume(paid, { store, thread, context, answers: { name: "ann" } });
  // @ts-expect-error Type 'string' is not assignable to type
  resume(paid, { store, thread, context, answers: "ann" });
});
wrong("an answer in doubt of a wrong shape", () => {
  resume(paid, { store, thread, context, answers: { in_doubt: { happened: true } } });
  // @ts-expect-error Type 'string' is not assignable to type 'boolean'
  resume(paid, { store, thread, context, answers: { in_doubt: { happened: "yes" } } });
});
wrong("an interrupt that is no schema", () => {
  defineGraph({ name: "ask", state: Shop, interrupts: { name: z.string() } });
  // @ts-expect-error Type 'string' is not assignable to type 'InterruptDeclaration'
  defineGraph({ name: "ask", state: Shop, interrupts: { name: "text" } });
});
wrong("an answer for the end of a question's time that its schema does not take", () => {
  const name = { answer: z.enum(["ann", "bob"]), expiresMs: 5 };
  defineGraph({ name: "ask", state: Shop, interrupts: { name: { ...name, onExpire: "ann" }, other: z.string() } });
  // @ts-expect-error is not assignable to type '"has an onExpire that does not match its answer schema"'
  defineGraph({ name: "ask", state: Shop, interrupts: { name: { ...name, onExpire: "eve" }, other: z.string() } });
});
wrong("a question in asks that the graph does not declare", () => {
  pay.nodes({ a: { interrupts: ["name"], run: () => undefined } });
  // @ts-expect-error Type '"nmae"' is not assignable to type '"approve" | "name"'
  pay.nodes({ a: { interrupts: ["nmae"], run: () => undefined } });
});
wrong("a channel in writes that the state does not have", () => {
  pay.nodes({ a: { writes: ["amount"], run: () => undefined } });
  // @ts-expect-error Type '"amuont"' is not assignable to type
  pay.nodes({ a: { writes: ["amuont"], run: () => undefined } });
});
wrong("an update that the node's writes do not list", () => {
  start.nodes({ a: { writes: ["verdict", "notes"], run: () => ({ verdict: "ship", notes: [] }) } });
  // @ts-expect-error Type 'never[]' is not assignable to type '"add notes to the writes of the node"'.
  start.nodes({ a: { writes: ["verdict"], run: () => ({ verdict: "ship", notes: [] }) } });
});
wrong("an update of an input node that its writes do not list", () => {
  start.nodes({ a: inputNode(File, () => ({ notes: [] }), { writes: ["notes"] }) });
  // @ts-expect-error is not assignable to type '"add notes to the writes of the node"'
  start.nodes({ a: inputNode(File, () => ({ notes: [] }), { writes: ["verdict"] }) });
});

// Running and resuming.

wrong("a run without its context", () => {
  run(paid, { input, context });
  // @ts-expect-error Property 'context' is missing in type
  run(paid, { input });
});
wrong("a run with a wrong context", () => {
  run(paid, { input, context: { user: "ann" } });
  // @ts-expect-error Type 'number' is not assignable to type 'string'
  run(paid, { input, context: { user: 1 } });
});
wrong("a resume without the context", () => {
  resume(paid, { store, thread, context });
  // @ts-expect-error Property 'context' is missing in type
  resume(paid, { store, thread });
});
wrong("a resume with a wrong context", () => {
  resume(paid, { store, thread, context: { user: "ann" } });
  // @ts-expect-error 'usr' does not exist in type '{ readonly user: string; }'. Did you mean to write 'user'?
  resume(paid, { store, thread, context: { usr: "ann" } });
});
wrong("a run without its input", () => {
  run(paid, { context, input });
  // @ts-expect-error Property 'input' is missing in type
  run(paid, { context });
});
wrong("an input that lacks a channel", () => {
  run(paid, { context, input: { amount: 1, note: "x" } });
  // @ts-expect-error Property 'amount' is missing in type '{ note: string; }'
  run(paid, { context, input: { note: "x" } });
});
wrong("an input of a wrong type", () => {
  run(paid, { context, input: { amount: 1 } });
  // @ts-expect-error Type 'string' is not assignable to type 'number'
  run(paid, { context, input: { amount: "1" } });
});
wrong("an input for a channel that is not there", () => {
  run(paid, { context, input: { amount: 1, note: "x" } });
  // @ts-expect-error 'ntoe' does not exist in type
  run(paid, { context, input: { amount: 1, ntoe: "x" } });
});
wrong("an option that run does not have", () => {
  run(paid, { context, input, thread: "t" });
  // @ts-expect-error 'thred' does not exist in type
  run(paid, { context, input, thred: "t" });
});
wrong("an option that resume does not have", () => {
  resume(paid, { context, store, thread, answers: {} });
  // @ts-expect-error Did you mean to write 'answers'?
  resume(paid, { context, store, thread, answer: {} });
});
wrong("a resume without a store", () => {
  resume(paid, { context, store, thread });
  // @ts-expect-error Property 'store' is missing in type
  resume(paid, { context, thread });
});
wrong("a breakpoint at a node that is not there", () => {
  run(paid, { context, input, breakpoints: { before: ["pay"] } });
  // @ts-expect-error Type '"pai"' is not assignable to type '"pay"'
  run(paid, { context, input, breakpoints: { before: ["pai"] } });
});
wrong("a breakpoint at a node that is not there, in a resume", () => {
  resume(paid, { context, store, thread, breakpoints: { after: ["pay"] } });
  // @ts-expect-error Type '"pai"' is not assignable to type '"pay"'
  resume(paid, { context, store, thread, breakpoints: { after: ["pai"] } });
});

// Results and history.

wrong("a channel that the result does not have", async () => {
  const { state } = await run(paid, { context, input }).result;
  state.amount;
  // @ts-expect-error Property 'amonut' does not exist on type
  state.amonut;
});
wrong("questions of a run that is done", async () => {
  const result = await run(paid, { context, input }).result;
  if (result.status === "waiting") result.interrupts;
  // @ts-expect-error Property 'interrupts' does not exist on type
  if (result.status === "done") result.interrupts;
});
wrong("a status that a result never has", async () => {
  const { status } = await run(paid, { context, input }).result;
  if (status === "cancelled") return;
  // @ts-expect-error This comparison appears to be unintentional
  if (status === "failed") return;
});
wrong("a result that is changed", async () => {
  const { state } = await run(paid, { context, input }).result;
  ({ ...state, amount: 3 });
  // @ts-expect-error Cannot assign to 'amount' because it is a read-only property
  state.amount = 3;
});
wrong("an event that no run has", () => {
  run(paid, { context, input }).on((event) => event.type === "run.completed");
  // @ts-expect-error This comparison appears to be unintentional
  run(paid, { context, input }).on((event) => event.type === "run.finished");
});
wrong("a step of history by a node that is not there", async () => {
  for await (const entry of getHistory(paid, { store, thread })) {
    entry.node === "pay";
    // @ts-expect-error the types '"pay" | undefined' and '"pai"' have no overlap
    entry.node === "pai";
  }
});
wrong("a change of a channel that is not there", async () => {
  for await (const { changes } of getHistory(paid, { store, thread })) {
    changes.amount;
    // @ts-expect-error Did you mean 'amount'?
    changes.amonut;
  }
});
wrong("a next node that is not there", async () => {
  const { next } = await getState(paid, { store, thread });
  next.includes("pay");
  // @ts-expect-error Argument of type '"pai"' is not assignable to parameter of type '"__end__" | "pay"'
  next.includes("pai");
});
wrong("a fork that changes a channel that is not there", () => {
  fork(paid, { store, thread, at: 1, name: "other", update: { amount: 2 } });
  // @ts-expect-error Did you mean to write 'amount'?
  fork(paid, { store, thread, at: 1, name: "other", update: { amonut: 2 } });
});
wrong("a fork that writes a wrong value", () => {
  fork(paid, { store, thread, at: 1, name: "other", update: { amount: 2 } });
  // @ts-expect-error Type 'string' is not assignable to type 'number | Overwrite<number> | undefined'
  fork(paid, { store, thread, at: 1, name: "other", update: { amount: "2" } });
});

// Graphs and policies.

wrong("an option that a graph does not have", () => {
  defineGraph({ name: "shop", version: 2, state: Shop });
  // @ts-expect-error 'verison' does not exist in type
  defineGraph({ name: "shop", verison: 2, state: Shop });
});
wrong("a state that is not declared with defineState", () => {
  defineGraph({ name: "shop", state: defineState({ files: z.string() }) });
  // @ts-expect-error 'files' does not exist in type 'StateDefinition
  defineGraph({ name: "shop", state: { files: z.string() } });
});
wrong("a channel that is no schema", () => {
  defineState({ files: z.string() });
  // @ts-expect-error is not assignable to type 'Channel<unknown, unknown, unknown, ChannelKind> | Schema<unknown, unknown>'
  defineState({ files: "text" });
});
wrong("a reducer that gives a wrong type", () => {
  defineState({ total: channel.reduce(z.number().default(0), (sum, add: number) => sum + add) });
  // @ts-expect-error Type 'string' is not assignable to type 'number'
  defineState({ total: channel.reduce(z.number().default(0), (sum, add: number) => `${sum + add}`) });
});
wrong("a node that reads a context that is not there", () => {
  pay.nodes({ a: (_state, { context }) => ({ note: context.user }) });
  // @ts-expect-error Did you mean 'user'?
  pay.nodes({ a: (_state, { context }) => ({ note: context.usr }) });
});
wrong("a node that reads the context of a graph without one", () => {
  start.nodes({ a: (_state, { run }) => ({ notes: [run.thread] }) });
  // @ts-expect-error 'context' is of type 'unknown'
  start.nodes({ a: (_state, { context }) => ({ notes: [context.user] }) });
});
wrong("an input in a node that takes none", () => {
  start.nodes({ a: inputNode(z.string(), (_state, { input }) => ({ notes: [input] })) });
  // @ts-expect-error Property 'input' does not exist on type 'NodeRuntime
  start.nodes({ a: (_state, { input }) => ({ notes: [input] }) });
});
wrong("a task that misreads its input", () => {
  start.nodes({ a: inputNode(File, (_state, { input }) => ({ notes: [input.file] })) });
  // @ts-expect-error Property 'path' does not exist on type '{ file: string; }'
  start.nodes({ a: inputNode(File, (_state, { input }) => ({ notes: [input.path] })) });
});
wrong("an option that a node does not have", () => {
  start.nodes({ a: { run: () => undefined, timeoutMs: 3 } });
  // @ts-expect-error Type 'number' is not assignable to type '"nodes have no option timeout"'.
  start.nodes({ a: { run: () => undefined, timeout: 3 } });
});
wrong("an option that a retry policy does not have", () => {
  start.nodes({ a: { run: () => undefined, retry: { attempts: 3, factor: 2 } } });
  // @ts-expect-error Type 'number' is not assignable to type '"nodes have no option retry.factr"'.
  start.nodes({ a: { run: () => undefined, retry: { attempts: 3, factr: 2 } } });
});
wrong("a retry policy without its attempts", () => {
  start.nodes({ a: { run: () => undefined, retry: { attempts: 3 } } });
  // @ts-expect-error Property 'attempts' is missing in type
  start.nodes({ a: { run: () => undefined, retry: { factor: 3 } } });
});
wrong("an effect class that does not exist", () => {
  start.nodes({ a: { run: () => undefined, effect: "once" } });
  // @ts-expect-error Type '"twice"' is not assignable to type
  start.nodes({ a: { run: () => undefined, effect: "twice" } });
});
wrong("a cache key that is not a text", () => {
  start.nodes({ a: { run: () => undefined, cache: { key: (state) => state.files.join() } } });
  // @ts-expect-error Type 'readonly string[]' is not assignable to type 'string'
  start.nodes({ a: { run: () => undefined, cache: { key: (state) => state.files } } });
});
wrong("an option that a cache policy does not have", () => {
  start.nodes({ a: { run: () => undefined, cache: { key: () => "k", ttlMs: 3 } } });
  // @ts-expect-error Type 'number' is not assignable to type '"nodes have no option cache.ttl"'.
  start.nodes({ a: { run: () => undefined, cache: { key: () => "k", ttl: 3 } } });
});
wrong("a task's cache key that misreads the input", () => {
  start.nodes({ a: inputNode(File, () => undefined, { cache: { key: (_state, input) => input.file } }) });
  // @ts-expect-error Property 'flie' does not exist on type '{ file: string; }'
  start.nodes({ a: inputNode(File, () => undefined, { cache: { key: (_state, input) => input.flie } }) });
});
wrong("an error handler that writes a channel that is not there", () => {
  start.nodes({ a: { run: () => undefined, onError: () => ({ notes: [] }) } });
  // @ts-expect-error Type 'never[]' is not assignable to type '"the state has no channel ntoes"'.
  start.nodes({ a: { run: () => undefined, onError: () => ({ ntoes: [] }) } });
});
wrong("an error handler that writes a wrong value", () => {
  start.nodes({ a: { run: () => undefined, onError: (_state, { error }) => ({ notes: [error.message] }) } });
  // @ts-expect-error Type 'string' is not assignable to type '"a write to a list is a list of items: use [item]"'.
  start.nodes({ a: { run: () => undefined, onError: (_state, { error }) => ({ notes: error.message }) } });
});
wrong("an effect class of an actor that the machine does not have", () => {
  const actors = { charge: fromPromise(async () => "paid") };
  const machine = setup({ actors }).createMachine({ id: "order" });
  durableMachine(machine, { version: 1, effects: { charge: "once" } });
  // @ts-expect-error Did you mean to write 'charge'?
  durableMachine(machine, { version: 1, effects: { chrage: "once" } });
});

// Tools and middleware.

wrong("a graph without the context that a tool injects", () => {
  defineGraph({ name: "shop", state: Shop, context: Visit }).nodes({ tools: toolNode({ tools: [refund] }) });
  // @ts-expect-error is not assignable to type 'Missing<"a tool injects from the context: add `context` to defineGraph", { readonly user: string; }>'
  defineGraph({ name: "shop", state: Shop }).nodes({ tools: toolNode({ tools: [refund] }) });
});
wrong("a graph whose context is not the one that a tool injects", () => {
  const Other = defineContext({ user: z.number() });
  defineGraph({ name: "shop", state: Shop, context: Visit }).nodes({ tools: toolNode({ tools: [refund] }) });
  // @ts-expect-error is not assignable to type 'Missing<"a tool injects from the context: change the `context` of defineGraph", { readonly user: string; }>'
  defineGraph({ name: "shop", state: Shop, context: Other }).nodes({ tools: toolNode({ tools: [refund] }) });
});
wrong("a graph without the state that a tool injects", () => {
  const Chat = defineState({ messages: channel.messages() });
  defineGraph({ name: "shop", state: Shop, context: Visit }).nodes({ tools: toolNode({ tools: [refund] }) });
  // @ts-expect-error is not assignable to type 'Missing<"a tool injects channels that the state of the graph lacks", { readonly files: readonly string[]; readonly verdict: "fix" | "ship" | null; readonly notes: readonly string[]; readonly total: number; readonly stock: Readonly<...>; readonly hint: string | undefined; readonly tree: { ...; }; readonly messages: r...'
  defineGraph({ name: "shop", state: Chat, context: Visit }).nodes({ tools: toolNode({ tools: [refund] }) });
});
wrong("a tool node in a graph without messages", () => {
  start.nodes({ tools: toolNode({ tools: [] }) });
  // @ts-expect-error is not assignable to type 'Missing<"a tool injects channels that the state of the graph lacks", { readonly messages: readonly Message[]; }>'
  pay.nodes({ tools: toolNode({ tools: [] }) });
});
wrong("a tool that misreads its arguments", () => {
  defineTool({ name: "t", description: "d", input: File, run: ({ file }) => file });
  // @ts-expect-error Property 'path' does not exist on type '{ file: string; }'
  defineTool({ name: "t", description: "d", input: File, run: ({ path }) => path });
});
wrong("a tool that reads what it does not inject", () => {
  const injections = { user: Visit.from((visit) => visit.user) };
  defineTool({
    name: "t",
    description: "d",
    input: File,
    inject: injections,
    run: (_args, { injected }) => injected.user,
  });
  defineTool({
    name: "t",
    description: "d",
    input: File,
    inject: injections,
    // @ts-expect-error Property 'usr' does not exist on type
    run: (_args, { injected }) => injected.usr,
  });
});
wrong("an injection of what the context does not have", () => {
  Visit.from((visit) => visit.user);
  // @ts-expect-error Did you mean 'user'?
  Visit.from((visit) => visit.usr);
});
wrong("a name that is both an argument and an injection", () => {
  defineTool({ name: "t", description: "d", input: File, inject: { key: inject.secret("KEY") }, run: () => "x" });
  // @ts-expect-error is not assignable to type 'Injection<SecretValue, unknown, unknown> & "the input has an argument file: rename one of them"'
  defineTool({ name: "t", description: "d", input: File, inject: { file: inject.secret("KEY") }, run: () => "x" });
});
wrong("a secret that is used as a text", () => {
  const injections = { key: inject.secret("KEY") };
  defineTool({
    name: "t",
    description: "d",
    input: File,
    inject: injections,
    run: (_a, { injected }) => injected.key.reveal(),
  });
  defineTool({
    name: "t",
    description: "d",
    input: File,
    inject: injections,
    // @ts-expect-error Property 'trim' does not exist on type 'SecretValue'
    run: (_a, { injected }) => injected.key.trim(),
  });
});
wrong("middleware that reads the arguments of any call", () => {
  defineMiddleware({
    name: "m",
    beforeTool: ({ call }) => (refund.is(call) && call.args.cents ? decide.allow() : decide.allow()),
  });
  // @ts-expect-error 'call.args' is of type 'unknown'
  defineMiddleware({ name: "m", beforeTool: ({ call }) => (call.args.cents ? decide.allow() : decide.allow()) });
});
wrong("middleware that misreads the arguments of its tool", () => {
  defineMiddleware({
    name: "m",
    beforeTool: ({ call }) => (refund.is(call) && call.args.cents ? decide.allow() : decide.allow()),
  });
  defineMiddleware({
    name: "m",
    // @ts-expect-error Did you mean 'cents'?
    beforeTool: ({ call }) => (refund.is(call) && call.args.cent ? decide.allow() : decide.allow()),
  });
});
wrong("middleware that forgets the reply", () => {
  defineMiddleware({ name: "m", aroundModel: async (request, next) => next(request) });
  // @ts-expect-error Type 'undefined' is not assignable to type 'ModelReply'
  defineMiddleware({ name: "m", aroundModel: async (request, next) => void (await next(request)) });
});
