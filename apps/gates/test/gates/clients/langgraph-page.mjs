/**
 * Page with the unmodified `useStream` of the LangGraph SDK, in jsdom. Plays a conversation, and prints a line of JSON
 * for each thing that the hook has returned: { name, value }.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [folder, url, token] = process.argv.slice(2);
const installed = createRequire(join(folder, "package.json"));
const load = (name) => import(pathToFileURL(installed.resolve(name)).href);
const { JSDOM } = await load("jsdom");
const { window } = new JSDOM("<!doctype html><main></main>", { url: "http://localhost/" });
Object.assign(globalThis, { window, document: window.document });
const { createElement } = await load("react");
const { createRoot } = await load("react-dom/client");
const { useStream } = await load("@langchain/langgraph-sdk/react");

const tell = (name, value) => console.log(JSON.stringify({ name, value: value ?? null }));
const human = (content) => ({ messages: [{ type: "human", content }] });

/** Opens the page. `shown` has each text of the newest message that was on the screen. */
function open(options = {}) {
  const page = { hook: undefined, shown: [], errors: [], onChange: () => {}, close: () => root.unmount() };
  const App = () => {
    page.hook = useStream({
      ...{ apiUrl: `${url}/langgraph`, apiKey: token, assistantId: "assistant", fetchStateHistory: { limit: 200 } },
      onError: (error) => page.errors.push(String(error)),
      ...options,
    });
    const newest = page.hook.messages.at(-1);
    if (newest?.type === "ai" && typeof newest.content === "string" && page.shown.at(-1) !== newest.content)
      page.shown.push(newest.content);
    setTimeout(() => page.onChange());
    return null;
  };
  const main = document.createElement("main");
  document.body.replaceChildren(main);
  const root = createRoot(main);
  root.render(createElement(App));
  return page;
}

function until(page, what, condition) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`${what} did not come; errors: ${page.errors.join(", ")}`)),
      20_000,
    );
    page.onChange = () => {
      if (page.hook === undefined || !condition(page.hook)) return;
      clearTimeout(timer);
      page.onChange = () => {};
      resolve();
    };
    page.onChange();
  });
}

const listTexts = ({ messages }) => messages.map(({ type, content }) => [type, content]);

/** Sends, and waits for the end of the run. */
async function submit(page, values, options) {
  await until(page, "idle", ({ isLoading }) => !isLoading);
  page.hook.submit(values, options);
  await until(page, "start", ({ isLoading }) => isLoading);
  await until(page, "end", ({ isLoading }) => !isLoading);
  await until(page, "history", ({ history }) => history.length > 0);
}

let thread;
const page = open({ onThreadId: (id) => (thread = id) });
await until(page, "page", (hook) => hook !== undefined);
await submit(page, human("hello"));
tell("streamed", listTexts(page.hook));
await submit(page, human("pay 5"));
tell(
  "interrupt",
  page.hook.interrupt.value.action_requests.map(({ name, args }) => [name, args]),
);
await submit(page, undefined, { command: { resume: { decisions: [{ type: "approve" }] } } });
tell("resumed", [listTexts(page.hook).slice(-3), page.hook.interrupt ?? null]);

const answer = page.hook.messages.at(-1);
await submit(page, undefined, { checkpoint: page.hook.getMessagesMetadata(answer).firstSeenState.parent_checkpoint });
const regenerated = page.hook.messages.at(-1);
tell("regenerated", [
  regenerated.content,
  regenerated.id !== answer.id,
  page.hook.getMessagesMetadata(regenerated).branchOptions.length,
]);

const second = page.hook.messages[2];
await submit(page, human("look at the moon"), {
  checkpoint: page.hook.getMessagesMetadata(second).firstSeenState.parent_checkpoint,
});
tell("edited", listTexts(page.hook));
const { branch, branchOptions } = page.hook.getMessagesMetadata(page.hook.messages[2]);
page.hook.setBranch(branchOptions.find((option) => option !== branch));
await until(page, "branch", ({ messages }) => messages[2]?.content === "pay 5");
tell("switched", [branchOptions.length, listTexts(page.hook).length]);

await submit(page, human("a new beginning"), {
  checkpoint: page.hook.getMessagesMetadata(page.hook.messages[0]).firstSeenState.parent_checkpoint,
});
tell("editedFirst", [listTexts(page.hook), page.hook.getMessagesMetadata(page.hook.messages[0]).branchOptions.length]);
page.close();

const again = open({ threadId: thread });
await until(again, "history", ({ messages }) => messages.length > 0);
tell("reopened", listTexts(again.hook));
again.close();

/** A page that is loaded anew in the middle of an answer. */
const kept = new Map();
const storage = {
  getItem: (key) => kept.get(key) ?? null,
  setItem: (key, value) => kept.set(key, value),
  removeItem: (key) => kept.delete(key),
};
const reconnectOnMount = () => storage;
let longThread;
const before = open({ reconnectOnMount, onThreadId: (id) => (longThread = id) });
await until(before, "page", (hook) => hook !== undefined);
before.hook.submit(human("long"));
tell("say", 20);
await until(before, "words", () => before.shown.at(-1)?.includes("w20"));
before.close();
const after = open({ reconnectOnMount, threadId: longThread });
await until(after, "words again", () => after.shown.at(-1)?.includes("w20"));
tell("say", 40);
await until(after, "end", ({ isLoading, messages }) => !isLoading && messages.at(-1)?.content.includes("w60"));
tell("reloaded", { texts: listTexts(after.hook), shown: after.shown });

/** A page that stays open while the server dies. */
const staying = open({ reconnectOnMount });
await until(staying, "page", (hook) => hook !== undefined);
staying.hook.submit(human("long"));
tell("say", 10);
await until(staying, "words", () => staying.shown.at(-1)?.includes("w10"));
tell("kill");
await until(staying, "end", ({ isLoading, messages }) => !isLoading && messages.at(-1)?.content.includes("w60"));
tell("survived", listTexts(staying.hook));
tell("errors", [...page.errors, ...again.errors, ...before.errors, ...after.errors, ...staying.errors]);
createInterface({ input: process.stdin }).close();
process.exit(0);
