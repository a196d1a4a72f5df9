import { call, say, scriptedModel } from "@statewright/testing";
import {
  channel,
  commandTargets,
  createAgent,
  defineGraph,
  defineState,
  defineTool,
  END,
  fanOut,
  fork,
  getHistory,
  goto,
  inputNode,
  isStatewrightError,
  memoryStore,
  resume,
  route,
  run,
  START,
  sqliteStore,
  subgraph,
} from "statewright";
import * as z from "zod";

// state and graph
const State = defineState({
  topic: z.string(),
  notes: channel.list(z.string()),
});

const app = defineGraph({ name: "app", state: State })
  .nodes({
    search: ({ topic }) => ({ notes: [topic] }),
  })
  .edges({ [START]: "search", search: END });

const { state } = await run(app, {
  input: { topic: "bees" },
}).result;
console.log(state.topic, state.notes);

// a route
const enough = defineGraph({ name: "enough", state: State })
  .nodes({ search: () => ({ notes: ["a note"] }) })
  .edges({
    [START]: "search",
    search: route(["search", END], (s) => (s.notes.length < 3 ? "search" : END)),
  });
console.log((await run(enough, { input: { topic: "bees" } }).result).state.notes.length);

// a fan-out
const Topics = defineState({
  topics: z.array(z.string()).default([]),
  notes: channel.list(z.string()),
});

const fan = defineGraph({ name: "fan", state: Topics })
  .nodes({
    plan: () => ({ topics: ["bees", "ants"] }),
    search: inputNode(z.string(), (_state, { input }) => ({
      notes: [input],
    })),
  })
  .edges({
    [START]: "plan",
    plan: fanOut("search", (s) => s.topics, {
      otherwise: END,
    }),
    search: END,
  });
console.log((await run(fan, {}).result).state.notes);

// a command
const judged = defineGraph({ name: "judged", state: State })
  .nodes({
    judge: (s) => (s.notes.length > 0 ? goto("ship") : goto("search", { topic: "ants" })),
    search: ({ topic }) => ({ notes: [topic] }),
    ship: () => ({ notes: ["shipped"] }),
  })
  .edges({
    [START]: "judge",
    judge: commandTargets("search", "ship"),
    search: "judge",
    ship: END,
  });
console.log((await run(judged, { input: { topic: "bees" } }).result).state.notes);

// an interrupt
const asking = defineGraph({
  name: "asking",
  state: State,
  interrupts: { approve: z.enum(["yes", "no"]) },
})
  .nodes({
    ask: async ({ topic }, { interrupt }) => {
      const payload = { about: topic };
      const answer = await interrupt("approve", { payload });
      return { notes: [answer] };
    },
  })
  .edges({ [START]: "ask", ask: END });

const store = memoryStore();
const first = await run(asking, {
  store,
  thread: "t1",
  input: { topic: "bees" },
}).result;
if (first.status === "waiting") console.log(first.interrupts[0]?.payload);
const second = await resume(asking, {
  store,
  thread: "t1",
  answers: { approve: "yes" },
}).result;
console.log(second.status, second.state.notes);

// a thread in a file
const file = sqliteStore("threads.db");
await run(app, {
  store: file,
  thread: "t2",
  input: { topic: "bees" },
}).result;
await file.close();

// history and fork
let at = 0;
for await (const step of getHistory(asking, {
  store,
  thread: "t1",
})) {
  if (step.next.includes("ask")) at = step.checkpointId;
}
const branch = await fork(asking, {
  store,
  thread: "t1",
  at,
  name: "ants",
  update: { topic: "ants" },
});
const again = await resume(asking, {
  store,
  thread: "t1",
  branch,
}).result;
if (again.status === "waiting") console.log(again.interrupts[0]?.payload);

// a stream
const handle = run(app, { input: { topic: "bees" } });
for await (const event of handle.events()) {
  if (event.type === "step.committed") console.log(event.nodes, event.changes);
}

// an agent
const model = scriptedModel([call("get_weather", { city: "Oslo" }), say("It rains.")]);
const weather = defineTool({
  name: "get_weather",
  description: "Current weather for a city.",
  input: z.object({ city: z.string() }),
  effect: "pure",
  run: ({ city }) => `It rains in ${city}.`,
});

const agent = createAgent({
  name: "agent",
  model,
  tools: [weather],
});

const answer = await agent.run({ input: "Rain in Oslo?" }).result;
console.log(answer.state.messages.map(({ role }) => role).join());

// a retry
let tries = 0;
const load = () => {
  tries += 1;
  if (tries < 2) throw new Error("busy");
  return { notes: ["loaded"] };
};
const isBusy = (error: unknown) => error instanceof Error && error.message === "busy";
const steady = defineGraph({ name: "steady", state: State })
  .nodes({
    load: {
      run: load,
      retry: {
        attempts: 3,
        initialMs: 10,
        factor: 2,
        on: (error) => isBusy(error),
      },
    },
  })
  .edges({ [START]: "load", load: END });
console.log((await run(steady, { input: { topic: "bees" } }).result).state.notes);

// a subgraph
const outer = defineGraph({ name: "outer", state: State })
  .nodes({
    research: subgraph(app, {
      input: ({ topic }) => ({ topic }),
      output: ({ notes }) => ({ notes }),
    }),
  })
  .edges({ [START]: "research", research: END });
const inside = await run(outer, { input: { topic: "bees", notes: ["first"] } }).result;
console.log(inside.state.notes);

// a limit
try {
  await run(enough, {
    input: { topic: "bees" },
    maxSteps: 2,
  }).result;
} catch (error) {
  if (isStatewrightError(error, "step_limit")) console.log(error.code);
}
