import {
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  inputNode,
  isStatewrightError,
  resume,
  run,
  START,
  sqliteStore,
} from "statewright";
import * as z from "zod";

const Digest = defineState({
  urls: z.array(z.string()),
  pages: channel.list(z.string()),
  summary: z.string().default(""),
});

const fetched: string[] = [];
let down = true;
const digest = defineGraph({ name: "digest", state: Digest })
  .nodes({
    fetch: inputNode(z.string(), (_state, { input }) => {
      if (input === "b" && down) throw new Error("b is down");
      fetched.push(input);
      return { pages: [`page ${input}`] };
    }),
    sum: ({ pages }) => ({ summary: `${pages.length} pages` }),
  })
  .edges({ [START]: fanOut("fetch", (state) => state.urls), fetch: "sum", sum: END });

// without a store
const { status, state } = await run(digest, { input: { urls: ["a", "c"] } }).result;
console.log(status, state.summary);

// events
const watched = run(digest, { input: { urls: ["a"] } });
for await (const event of watched.events()) {
  if (event.type === "task.started") console.log(event.node, event.task);
  if (event.type === "step.committed") console.log(event.nodes.join(), "→", event.next.join());
}

// with a store
const store = sqliteStore("digest.db");
try {
  await run(digest, { store, thread: "monday", input: { urls: ["a", "b", "c"] } }).result;
} catch (error) {
  if (isStatewrightError(error, "node_failed")) console.log(error.code, error.place.node, error.place.task);
}
down = false;
const resumed = await resume(digest, { store, thread: "monday" }).result;
console.log(resumed.status, resumed.state.pages.join(), fetched.slice(-3).join());

// every status
const ended = await run(digest, { store, thread: "tuesday", input: { urls: ["a"] } }).result;
switch (ended.status) {
  case "done":
    console.log(ended.output.summary);
    break;
  case "waiting":
    console.log(ended.interrupts);
    break;
  case "paused":
    console.log(ended.cause.code);
    break;
  case "cancelled":
    console.log(ended.reason);
    break;
}

// cancel
const stopped = run(digest, { store, thread: "wednesday", input: { urls: ["a"] } });
stopped.on((event) => {
  if (event.type === "step.committed" && event.nodes.includes("fetch")) stopped.cancel("enough");
});
console.log((await stopped.result).status);

// drain
const drained = run(digest, { store, thread: "thursday", input: { urls: ["a"] } });
drained.on((event) => {
  if (event.type === "task.started") drained.drain("deploy");
});
const paused = await drained.result;
if (paused.status === "paused") console.log(paused.cause.code, paused.state.pages.join());
console.log((await resume(digest, { store, thread: "thursday" }).result).status);

// limits
try {
  await run(digest, { store, thread: "friday", input: { urls: ["a", "b", "c"] }, maxSteps: 1, maxConcurrency: 2 })
    .result;
} catch (error) {
  if (isStatewrightError(error, "step_limit")) console.log(error.code, error.place.step);
}
console.log((await resume(digest, { store, thread: "friday", maxSteps: 10 }).result).status);
await store.close();
