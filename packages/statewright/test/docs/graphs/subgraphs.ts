import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  END,
  fanOut,
  fork,
  getHistory,
  getState,
  goto,
  inputNode,
  memoryStore,
  resume,
  run,
  START,
  subgraph,
} from "statewright";
import * as z from "zod";

// the inner graph
const Notes = defineState({ topic: z.string(), drafts: channel.list(z.string()), notes: channel.list(z.string()) });

const researcher = defineGraph({
  name: "researcher",
  state: Notes,
  private: ["drafts"],
  input: z.object({ topic: z.string().min(1) }),
  output: z.object({ notes: z.array(z.string()) }),
  interrupts: { scope: z.enum(["wide", "narrow"]) },
})
  .nodes({
    plan: ({ topic }) => ({ drafts: [`plan of ${topic}`] }),
    ask: async (_state, { interrupt }) => ({ notes: [await interrupt("scope")] }),
    write: ({ topic, drafts }) => ({ notes: [`${topic}, from ${drafts.length} draft`] }),
  })
  .edges({ [START]: "plan", plan: "ask", ask: "write", write: END });

// the outer graph
const Report = defineState({ question: z.string(), notes: channel.list(z.string()) });

const report = defineGraph({ name: "report", state: Report })
  .nodes({
    research: subgraph(researcher, {
      input: (state) => ({ topic: state.question }),
      output: ({ notes }) => ({ notes }),
    }),
    close: () => ({ notes: ["closed"] }),
  })
  .edges({ [START]: "research", research: "close", close: END });

// answer the interrupt of the subgraph
const store = memoryStore();
const input = { question: "bees", notes: ["asked by ann"] };
const first = await run(report, { store, thread: "t", input }).result;
if (first.status === "waiting") console.log(first.interrupts.map(({ key, node }) => `${key} asked by ${node}`).join());

const going = resume(report, { store, thread: "t", answers: { "research.scope": "wide" } });
going.on((event) => {
  if (event.type === "step.committed") console.log(event.within ?? "report", event.nodes.join());
});
console.log((await going.result).state.notes);

// read the history of the subgraph
let asked = 0;
for await (const step of getHistory(researcher, { store, thread: "t", nesting: "research" })) {
  console.log(step.checkpointId, step.node ?? step.source, "→", step.next.join());
  if (step.next.includes("ask")) asked = step.checkpointId;
}
const { state } = await getState(researcher, { store, thread: "t", nesting: "research" });
console.log(state.drafts);

// fork from an inner checkpoint
const branch = await fork(researcher, { store, thread: "t", at: asked, name: "ants", update: { topic: "ants" } });
await resume(report, { store, thread: "t", branch }).result;
const other = await resume(report, { store, thread: "t", branch, answers: { "research.scope": "narrow" } }).result;
console.log(other.state.notes);

// a command
const judge = defineGraph({
  name: "judge",
  state: defineState({ score: z.number(), good: z.boolean().default(false) }),
})
  .nodes({ look: ({ score }) => ({ good: score > 5 }) })
  .edges({ [START]: "look", look: END });

const gate = defineGraph({ name: "gate", state: defineState({ score: z.number(), log: channel.list(z.string()) }) })
  .nodes({
    judged: subgraph(judge, {
      input: ({ score }) => ({ score }),
      output: ({ good }) => (good ? goto("ship") : goto("fix", { log: ["not good"] })),
    }),
    fix: () => ({ log: ["fixed"] }),
    ship: () => ({ log: ["shipped"] }),
  })
  .edges({ [START]: "judged", judged: commandTargets("fix", "ship"), fix: END, ship: END });
console.log((await run(gate, { input: { score: 3 } }).result).state.log);

// one call for each item
const many = defineGraph({
  name: "many",
  state: defineState({ scores: z.array(z.number()), good: channel.record(z.boolean()) }),
})
  .nodes({
    judged: inputNode(
      z.number(),
      subgraph(judge, {
        input: (_state, { input: score }) => ({ score }),
        output: ({ good }, { input: score }) => ({ good: { [score]: good } }),
      }),
    ),
  })
  .edges({ [START]: fanOut("judged", (state) => state.scores), judged: END });
console.log((await run(many, { input: { scores: [3, 7] } }).result).state.good);

// the state at the start of a call
const counter = defineGraph({ name: "counter", state: defineState({ total: z.number().default(0) }) })
  .nodes({ add: ({ total }) => ({ total: total + 1 }) })
  .edges({ [START]: "add", add: END });

for (const persistence of ["per-call", "per-thread"] as const) {
  const twice = defineGraph({ name: "twice", state: defineState({ totals: channel.list(z.number()) }) })
    .nodes({
      count: subgraph(counter, { persistence, input: () => ({}), output: ({ total }) => ({ totals: [total] }) }),
      look: ({ totals }) => goto(totals.length < 2 ? "count" : END),
    })
    .edges({ [START]: "count", count: "look", look: commandTargets("count", END) });
  console.log(persistence, (await run(twice, {}).result).state.totals);
}

export { report };
