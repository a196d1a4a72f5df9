/** Runtime values of the public entries of `statewright`. */
import { expect, test } from "vitest";
import * as adapter from "../../../src/adapter.ts";
import * as browser from "../../../src/browser.ts";
import * as browserStore from "../../../src/browser-store.ts";
import * as root from "../../../src/index.ts";
import * as inspect from "../../../src/inspect.ts";
import * as middleware from "../../../src/middleware.ts";
import * as store from "../../../src/store.ts";

/** Readers for first programs, and for processes that import only the entry for readers. */
const sharedReaders = ["getHistory", "getState", "listInterrupts", "streamEvents"];

test("the entry statewright has at most 80 runtime values", () => {
  const names = Object.keys(root);
  expect(names).toContain("createAgent");
  expect(names.length).toBeLessThanOrEqual(80);
});

test("each runtime value of statewright is in one entry, except for four readers that statewright/inspect repeats", () => {
  const names = [root, inspect, adapter, store, middleware].flatMap((entry) => Object.keys(entry));
  expect(names.filter((name, at) => names.indexOf(name) !== at).sort()).toEqual(sharedReaders);
});

test("the entries for browsers have the values of statewright and statewright/store, except for those of SQLite", () => {
  const listMissing = (all: object, some: object) => Object.keys(all).filter((name) => !Object.hasOwn(some, name));
  expect(listMissing(root, browser)).toEqual(["sqliteStore"]);
  expect(listMissing(store, browserStore).sort()).toEqual(["encryptStore", "folderArtifactBodies", "socketRelay"]);
  expect([listMissing(browser, root), listMissing(browserStore, store)]).toEqual([[], []]);
});
