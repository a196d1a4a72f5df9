/**
 * One process whose agent is steered while its first tool runs, through a second store on the same file. Each process
 * requests the same run, continues the earlier work and prints the conversation.
 */
import { existsSync, writeFileSync } from "node:fs";
import process from "node:process";
import { call, crashPoint, crashPoints, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, getMessageText, sqliteStore, steer } from "statewright";
import * as z from "zod";

const thread = "talk";
const store = crashPoints(sqliteStore("talk.db", { durability: "normal" }));
const other = sqliteStore("talk.db", { durability: "normal" });

const work = defineTool({
  name: "work",
  description: "Do one piece of work.",
  input: z.object({ name: z.string() }),
  effect: "idempotent",
  run: async ({ name }) => {
    crashPoint(`inside ${name}`);
    if (!existsSync("sent")) {
      await steer(agent, { store: other, thread, input: "stop" });
      writeFileSync("sent", "");
    }
    return name;
  },
});

const agent = createAgent({
  name: "talker",
  model: scriptedModel([
    [call("work", { name: "a" }), call("work", { name: "b" })],
    say("stopped"),
    say("said too much"),
  ]),
  tools: [work],
  strategy: "sequential",
  store,
});

const { state } = await agent.run({
  thread,
  key: "one",
  input: [{ role: "user", id: "u1", content: [{ type: "text", text: "go" }] }],
}).result;
const said = state.messages.map((message) => `${message.role}: ${getMessageText(message)}`);
process.stdout.write(JSON.stringify({ said, waits: (await store.inbox(thread, "main")).length }));
await other.close();
await store.close();
