/**
 * Page with the unmodified `useStream` of `@langchain/react`, in jsdom. Plays a conversation, and prints a line of JSON
 * for each thing that the hook has returned: { name, value }.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const [folder, url, token] = process.argv.slice(2);
const installed = createRequire(join(folder, "package.json"));
const load = (name) => import(pathToFileURL(installed.resolve(name)).href);
const { JSDOM } = await load("jsdom");
const { window } = new JSDOM("<!doctype html><main></main>", { url: "http://localhost/" });
Object.assign(globalThis, { window, document: window.document });
const { createElement, useEffect } = await load("react");
const { createRoot } = await load("react-dom/client");
const { useStream } = await load("@langchain/react");

const tell = (name, value) => console.log(JSON.stringify({ name, value: value ?? null }));
const human = (content) => ({ messages: [{ type: "human", content }] });

/** Opens the page. `shown` has each text of the newest answer that was on the screen. */
function open(options = {}) {
  const page = { hook: undefined, shown: [], onChange: () => {}, close: () => root.unmount() };
  const App = () => {
    page.hook = useStream({ apiUrl: `${url}/langgraph`, apiKey: token, assistantId: "assistant", ...options });
    useEffect(() => {
      const newest = page.hook.messages.at(-1);
      if (newest?.getType() === "ai" && page.shown.at(-1) !== newest.text) page.shown.push(newest.text);
      page.onChange();
    });
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
    const describe = () => JSON.stringify([listTexts(page.hook), page.hook.isLoading, String(page.hook.error)]);
    const timer = setTimeout(() => reject(new Error(`${what} did not come: ${describe()}`)), 30_000);
    page.onChange = () => {
      if (page.hook === undefined || !condition(page.hook)) return;
      clearTimeout(timer);
      page.onChange = () => {};
      resolve();
    };
    page.onChange();
  });
}

const listTexts = ({ messages }) => messages.map((message) => [message.getType(), message.text]);
const getNewest = ({ messages }) => messages.at(-1)?.text ?? "";

/** Sends, and waits until the hook shows the answer and is idle. */
async function submit(page, content, answer) {
  void page.hook.submit(human(content));
  await until(page, answer, (hook) => !hook.isLoading && getNewest(hook) === answer);
}

let thread;
const page = open({ onThreadId: (id) => (thread = id) });
await until(page, "page", (hook) => hook !== undefined);
await submit(page, "hello", "You said: hello");
tell("streamed", listTexts(page.hook));
await submit(page, "look tea", "Result: tea: found");
tell(
  "tools",
  page.hook.toolCalls.map(({ name, args, output, status }) => [name, args, output, status]),
);

void page.hook.submit(human("pay 5 6"));
await until(page, "interrupt", ({ interrupts, isLoading }) => interrupts.length === 1 && !isLoading);
tell(
  "interrupt",
  page.hook.interrupts[0].value.action_requests.map(({ name, args }) => [name, args]),
);
const edited = { type: "edit", editedAction: { name: "pay", args: { amount: 9 } } };
void page.hook.respond({ decisions: [edited, { type: "reject", message: "too much" }] });
await until(
  page,
  "answer",
  (hook) => !hook.isLoading && getNewest(hook).startsWith("Result: ") && hook.messages.length === 11,
);
tell("responded", [listTexts(page.hook).slice(-4), page.hook.interrupts.length]);

page.shown.length = 0;
await submit(page, "retract", "You said: retract");
tell("retracted", [page.shown, listTexts(page.hook).slice(-2)]);
await submit(page, "ask about ants", "Result: You said: about ants");
tell("inner", listTexts(page.hook).slice(-4));

void page.hook.submit(human("long"));
tell("say", 20);
await until(page, "word 20", (hook) => getNewest(hook).endsWith("w20 "));
page.close();
const second = open({ threadId: thread });
await until(second, "word 20 again", (hook) => hook !== undefined && getNewest(hook).endsWith("w20 "));
tell("reloaded", [second.hook.isLoading, getNewest(second.hook).split(" ").length - 1]);
tell("say", 10);
await until(second, "word 30", (hook) => getNewest(hook).endsWith("w30 "));
tell("kill");
await until(second, "the whole answer", (hook) => !hook.isLoading && getNewest(hook).endsWith("w60 "));
tell("survived", [listTexts(second.hook).slice(-2), second.hook.messages.length]);
tell("shown", second.shown);

void second.hook.submit(human("fail")).catch(() => {});
await until(second, "failure", ({ error, isLoading }) => error !== undefined && !isLoading);
tell("failed", String(second.hook.error));
await submit(second, "hello again", "You said: hello again");
tell("error", second.hook.error);
void second.hook.submit(human("long"));
tell("say", 3);
await until(second, "word 3", (hook) => getNewest(hook).endsWith("w3 "));
await second.hook.stop();
tell("stopped", second.hook.isLoading);
const status = async () => {
  const response = await fetch(`${url}/langgraph/threads/${thread}`, { headers: { "x-api-key": token } });
  return (await response.json()).status;
};
while ((await status()) !== "idle");
tell("status", await status());
second.close();

const third = open();
await until(third, "third page", (hook) => hook !== undefined);
await submit(third, "hello", "You said: hello");
const before = third.hook.messages.at(-1).id;
void third.hook.submit(null, { forkFrom: "000000000001" });
await until(third, "regeneration", ({ messages, isLoading }) => !isLoading && messages.at(-1)?.id !== before);
tell("regenerated", listTexts(third.hook));
void third.hook.submit(human("an edit"), { forkFrom: "000000000000" });
await until(third, "edit", (hook) => !hook.isLoading && getNewest(hook) === "You said: an edit");
tell("edited", listTexts(third.hook));
process.exit(0);
