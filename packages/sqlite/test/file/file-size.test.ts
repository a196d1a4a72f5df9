/** Space of messages in the file. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { channel, defineGraph, defineState, END, run, START } from "@statewright/core";
import { expect, test } from "vitest";
import { createOpenSchema } from "../support/growing-graph.ts";
import { sqliteStore } from "../support/sqlite-store.ts";
import { createFolder } from "../support/stores.ts";

test("a chat of 200 turns with two messages of 1 KB takes less than twice its JSON in the file [FX102]", async () => {
  const home = createFolder();
  const file = join(home.path, "chat.db");
  const store = sqliteStore(file, { durability: "normal" });
  const chat = defineGraph({ name: "chat", state: defineState({ log: channel.list(createOpenSchema<string>()) }) })
    .nodes({ reply: () => ({ log: ["a".repeat(1_100)] }) })
    .edges({ [START]: "reply", reply: END });
  for (let turn = 0; turn < 200; turn++)
    await run(chat, { store, thread: "t", input: { log: ["q".repeat(1_100)] } }).result;
  await store.close();
  expect(statSync(file).size).toBeLessThan(2 * 400 * 1_100);
  home.remove();
});
