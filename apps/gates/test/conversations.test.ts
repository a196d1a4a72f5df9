/** A small share of the random conversations, and a test of the gate itself: the provider checks find each invalid request. */
import { expect, test } from "vitest";
import { simulateConversations } from "../src/conversations/run-conversations.ts";
import type { Body } from "../src/conversations/wire-format.ts";
import { formats } from "../src/conversations/wire-server.ts";

test("random conversations with steering, aborts, approvals, trimming and provider changes send only valid provider requests", async () => {
  const { violations, requests, happened, replies } = await simulateConversations(40);
  expect(violations).toEqual([]);
  expect(requests).toBeGreaterThan(100);
  for (const deed of ["abort", "crash", "drain", "steer", "followUp", "waiting", "done"])
    expect(happened[deed], deed).toBeGreaterThan(0);
  for (const kind of ["reply", "slow", "cut", "429"]) expect(replies[kind], kind).toBeGreaterThan(0);
}, 120_000);

const call = { type: "tool_use", id: "c1", name: "look", input: {} };
const result = { type: "tool_result", tool_use_id: "c1", content: "seen" };
const anthropic = (...contents: readonly (readonly object[])[]): Body => ({
  max_tokens: 1,
  messages: contents.map((content, index) => ({ role: index % 2 === 0 ? "user" : "assistant", content })),
});
const go = [{ type: "text", text: "go" }];

const chatCall = { id: "c1", type: "function", function: { name: "look", arguments: "{}" } };
const chat = (...messages: readonly object[]): Body => ({ messages: [{ role: "user", content: "go" }, ...messages] });

const said = { type: "function_call", call_id: "c1", name: "look", arguments: "{}" };
const responses = (...input: readonly object[]): Body => ({ model: "gpt", input });

const google = (...contents: readonly object[]): Body => ({ contents });
const googleCall = { role: "model", parts: [{ functionCall: { name: "look", args: {} } }] };

test.each<[string, Body, string | undefined]>([
  ["anthropic", anthropic(go, [call], [result]), undefined],
  ["anthropic", anthropic(go, [call], go), "message 2 has results for [], expected [c1]"],
  ["anthropic", anthropic(go, [call], [...go, result]), "message 2 has a tool result after other content"],
  ["anthropic", anthropic(go, [{ ...call, id: "a:b" }], []), 'message 1 has a call with the invalid id "a:b"'],
  ["anthropic", anthropic(go, [{ type: "text", text: " " }], go), "message 1 has an empty text"],
  ["anthropic", anthropic(go, [call]), "expected the last message to have the role user"],
  [
    "anthropic",
    anthropic(go, [{ type: "thinking", thinking: "Hm", signature: "s" }], go),
    "message 1 has reasoning without a valid signature",
  ],
  [
    "chat",
    chat({ role: "assistant", tool_calls: [chatCall] }, { role: "tool", tool_call_id: "c1", content: "" }),
    undefined,
  ],
  ["chat", chat({ role: "assistant", tool_calls: [chatCall] }), "the calls c1 have no result"],
  [
    "chat",
    chat({ role: "tool", tool_call_id: "c1", content: "" }),
    "message 1 has a result for c1 without a call before",
  ],
  ["chat", chat({ role: "assistant", content: null }), "has neither content nor calls"],
  ["responses", responses(said, { type: "function_call_output", call_id: "c1", output: "" }), undefined],
  ["responses", responses(said, { role: "user", content: [] }), "item 1 follows calls without results: c1"],
  ["responses", responses({ type: "item_reference", id: "msg_1" }), 'item 0 references the unknown item "msg_1"'],
  [
    "google",
    google({ role: "user", parts: [{ text: "go" }] }, googleCall),
    "content 1 has a call without a valid signature",
  ],
  ["google", google(googleCall), "expected the first content to have the role user"],
])("the check finds a request that %s refuses: %o", (provider, body, problem) => {
  const found = formats[provider]?.open().findProblems(body).join("\n");
  if (problem === undefined) expect(found).toBe("");
  else expect(found).toContain(problem);
});
