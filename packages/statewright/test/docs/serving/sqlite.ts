import { randomBytes } from "node:crypto";
import { channel, defineGraph, defineState, END, memoryStore, run, START, sqliteStore } from "statewright";
import { copyThread, deleteThread, exportThread, importThread, pruneThread } from "statewright/inspect";
import { encryptStore, folderArtifactBodies } from "statewright/store";
import * as z from "zod";

const day = 24 * 3_600_000;
const Log = defineState({ log: channel.list(z.string()) });
const logs = defineGraph({ name: "logs", version: 1, state: Log })
  .nodes({ note: (state) => ({ log: [`noted ${state.log.length}`] }) })
  .edges({ [START]: "note", note: END });

async function keepPlain(): Promise<void> {
  const store = sqliteStore("agent.db");
  const otherStore = memoryStore();
  for (const said of ["one", "two"]) await run(logs, { store, thread: "t7", input: { log: [said] } }).result;

  await store.backup("monday.db");

  const text = await exportThread(store, "t7");
  await importThread(otherStore, text);
  await copyThread(store, "t7", "t7-before-the-change");
  await deleteThread(store, "t7");

  await pruneThread(store, { keepLast: 50, olderThanMs: 30 * day });
  await store.vacuum();

  const { faults } = await store.verify();

  for (const { id } of await store.threads()) console.log(id, (await otherStore.threads()).length, faults.length);
  await store.close();
}

async function inspectFile(): Promise<void> {
  const reader = sqliteStore("agent.db", { readOnly: true });
  console.log((await reader.threads()).length, (await reader.verify()).faults.length);
  await reader.close();
}

async function keepBodiesOutside(): Promise<void> {
  const store = sqliteStore("agent.db", { artifactBodies: folderArtifactBodies("agent-artifacts") });
  await store.close();
}

async function encrypt(): Promise<void> {
  const plain = sqliteStore("private.db");
  await run(logs, { store: plain, thread: "t8", input: { log: ["private"] } }).result;
  await plain.close();

  const older: Key[] = [{ id: "2026-10", key: randomBytes(32) }];
  let ring = older;
  const keys = () => ring;
  encryptStore("private.db", { keys });
  await changeKeys(keys, (newest) => {
    ring = [newest, ...older];
  });
}

async function changeKeys(keys: () => Key[], put: (newest: Key) => void): Promise<void> {
  const store = sqliteStore("private.db", { encryption: { keys } });
  put({ id: "2026-11", key: randomBytes(32) });
  console.log(await store.rotate(), await store.rotate());
  await store.close();
}

interface Key {
  readonly id: string;
  readonly key: Uint8Array;
}

await keepPlain();
await inspectFile();
await keepBodiesOutside();
await encrypt();
