/**
 * Process that opens a file with `readOnly` as another user, reads, and prints what it found as JSON: the items of
 * thread "t", or the code and message of the error. `twice` reads again after a line of input, with the same store.
 */
import { once } from "node:events";
import process from "node:process";
import { isStatewrightError } from "@statewright/core";
import { driverNames } from "../../../src/driver/choose-driver.ts";
import { readItems } from "../rows.ts";
import { sqliteStore } from "../sqlite-store.ts";

const [file = "", driver, user = "", times = "once"] = process.argv.slice(2);
if (user !== "") {
  process.setgid?.(Number(user));
  process.setuid?.(Number(user));
}
try {
  const store = sqliteStore(file, { readOnly: true, driver: driverNames.find((name) => name === driver) });
  const items = await readItems(store, "t");
  await store.snapshot?.((rows) => rows.thread("t"));
  process.stdout.write(`${JSON.stringify({ items })}\n`);
  if (times === "twice") {
    await once(process.stdin, "data");
    process.stdin.pause();
    process.stdout.write(`${JSON.stringify({ items: await readItems(store, "t") })}\n`);
  }
  await store.close();
} catch (thrown) {
  if (!isStatewrightError(thrown)) throw thrown;
  process.stdout.write(`${JSON.stringify({ code: thrown.code, message: thrown.message })}\n`);
}
