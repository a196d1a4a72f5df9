/** Worker thread that has a file open until it gets a message. */
import { parentPort, workerData } from "node:worker_threads";
import { type DriverName, sqliteStore } from "@statewright/sqlite";

const { file, driver } = workerData as { readonly file: string; readonly driver: DriverName };
const store = sqliteStore(file, { driver });
parentPort?.once("message", async () => {
  await store.close();
  parentPort?.postMessage("closed");
});
parentPort?.postMessage("open");
