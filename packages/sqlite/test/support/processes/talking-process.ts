/** A worker with an engine and a relay on a file. Its model says what the parent tells it, when the parent tells it. */
import process from "node:process";
import {
  channel,
  defineGraph,
  defineState,
  END,
  engine,
  type Model,
  type ModelReply,
  START,
  userMessage,
} from "@statewright/core";
import { socketRelay, sqliteStore } from "../../../src/index.ts";
import type { WorkerOrder } from "../talking-worker.ts";

const [file = ""] = process.argv.slice(2);
const words: string[] = [];
let say: (word: string) => void = () => undefined;
let finish: () => void = () => undefined;

const model: Model = {
  id: "talker",
  respond: (_request, { delta, signal }) =>
    new Promise<ModelReply>((resolve, reject) => {
      words.length = 0;
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      say = (text) => {
        words.push(text);
        delta?.({ type: "text", text });
      };
      finish = () => resolve({ content: [{ type: "text", text: words.join("") }], finish: "stop" });
      process.send?.({ requested: true });
    }),
};

const graph = defineGraph({ name: "talk", state: defineState({ messages: channel.messages() }) })
  .nodes({
    answer: async ({ messages }, runtime) => ({
      messages: [await runtime.model({ model, request: { messages, tools: [] } })],
    }),
  })
  .edges({ [START]: "answer", answer: END });

const store = sqliteStore(file);
const relay = socketRelay(file);
const host = engine({ store, graphs: [graph], relay, pollMs: 50 });

process.on("message", (order: WorkerOrder) => {
  if (order.do === "ask") {
    const handle = host.run(graph, { thread: order.thread, input: { messages: [userMessage("?")] } });
    handle.result.then(
      () => process.send?.({ ended: true }),
      () => process.send?.({ ended: true }),
    );
  } else if (order.do === "say") say(order.word);
  else if (order.do === "finish") finish();
  else {
    relay.close();
    void host.stop({ now: true }).then(() => {
      void store.close();
      process.disconnect();
    });
  }
});
await host.start();
process.send?.({ ready: true });
