/** Process that saves artifacts with bodies in a folder, one after another, and prints a line per saved one. */
import { createHash } from "node:crypto";
import process from "node:process";
import { folderArtifactBodies, sqliteStore } from "@statewright/sqlite";
import { createArtifactWrite, createSuperstep, graph, saveCommit } from "../rows.ts";

const [file = "", folder = ""] = process.argv.slice(2);
const store = sqliteStore(file, { durability: "normal", artifactBodies: folderArtifactBodies(folder) });
const claim = await store.claim({ ...graph, thread: "t" });
for (let id = claim.nextCheckpoint; ; id++) {
  const body = createHash("sha512").update(`${id}`).digest();
  const artifacts = [await createArtifactWrite(Buffer.concat(Array.from({ length: 200 + (id % 7) }, () => body)))];
  await saveCommit(store, { ...createSuperstep("t", claim, id), artifacts });
  process.stdout.write(`${id}\n`);
}
