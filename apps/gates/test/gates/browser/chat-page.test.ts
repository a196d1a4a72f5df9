/** The chat page of the examples in a real Chromium, against a server in another process. */
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  clickButton,
  findLowContrast,
  read,
  screens,
  send,
  setUpDesks,
  story,
  tokens,
  waitForRest,
  waitForText,
} from "./page-desk.ts";

const { openDesk, openPage } = setUpDesks("chat", { query: "?chat=c1" });

test("a wrong token is refused on the page, and a right one opens the chat", async () => {
  const { page } = await openDesk();
  await clickButton(page, "Sign out");
  await page.type("#token", "a-token-of-nobody-at-all");
  await page.click("button[type=submit]");
  await waitForText(page, "This token is not accepted.");
  await page.screenshot({ path: join(screens, "sign-in-refused.png") });
  await page.type("#token", tokens.ann);
  await page.click("button[type=submit]");
  await waitForText(page, "What can I do for you?");
});

test("the page shows text and tools at all sizes in both themes, without a sideways scroll and with enough contrast", async () => {
  const { page } = await openDesk();
  await page.screenshot({ path: join(screens, "empty.png") });
  expect(await read(page, ".banner")).toBe("");
  await send(page, "What is the weather?");
  await waitForText(page, "That is done.");
  await send(page, "Please pay Ada.");
  await waitForText(page, "Needs your approval");
  await send(page, "x".repeat(300));
  await waitForText(page, "You wrote");
  await send(page, "Please pay Ada again.");
  await waitForText(page, "Needs your approval");
  // The first question was ended by the message after it, and can no longer be answered.
  expect(await page.evaluate(`document.querySelectorAll(".approval").length`)).toBe(1);
  expect(await read(page)).toContain("Not answered");
  for (const theme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
    for (const [width, height] of [
      [320, 640],
      [390, 844],
      [768, 1024],
      [1440, 900],
    ] as const) {
      await page.setViewport({ width, height });
      await page.screenshot({ path: join(screens, `chat-${theme}-${width}.png`) });
      expect([width, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([width, width]);
    }
    expect([theme, await page.evaluate(findLowContrast)]).toEqual([theme, []]);
  }
});

test("a person approves a call, and denies another with a reason", async () => {
  const { page } = await openDesk();
  await send(page, "Please pay Ada.");
  await clickButton(page, "Approve");
  await waitForText(page, "Paid 25 euros to Ada.");
  await waitForText(page, "That is done.");
  await waitForRest(page);
  await send(page, "Please pay Ada again.");
  await waitForText(page, "Needs your approval");
  await page.type(".approval input", "once is enough");
  await clickButton(page, "Deny");
  await waitForText(page, "I did not do it.");
  expect(await read(page, ".output-denied")).toContain("once is enough");
  await page.screenshot({ path: join(screens, "approved-and-denied.png") });
});

test("a reload in the middle of a word shows each word once", async () => {
  const { page, server } = await openDesk();
  await send(page, "Tell me a story.");
  server.say(12);
  await waitForText(page, "word12");
  await page.screenshot({ path: join(screens, "streaming.png") });
  await page.reload();
  await waitForText(page, "word12");
  server.say(48);
  await waitForText(page, "word60");
  await waitForRest(page);
  expect((await read(page, ".message.assistant .text")).trim()).toBe(story);
});

test("Stop ends the run, and the next message is answered", async () => {
  const { page, server } = await openDesk();
  await send(page, "Tell me a story.");
  server.say(5);
  await waitForText(page, "word5");
  await clickButton(page, "Stop");
  await waitForRest(page);
  await page.screenshot({ path: join(screens, "stopped.png") });
  await send(page, "Hello.");
  await waitForText(page, "You wrote: Hello.");
});

test("a message can be edited, and an answer regenerated", async () => {
  const { page } = await openDesk();
  await send(page, "One.");
  await waitForText(page, "You wrote: One.");
  await waitForRest(page);
  await clickButton(page, "Regenerate");
  await waitForRest(page);
  await waitForText(page, "You wrote: One.");
  await clickButton(page, "Edit");
  await page.type(".editing textarea", " And two.");
  await page.screenshot({ path: join(screens, "editing.png") });
  await clickButton(page, "Send again");
  await waitForText(page, "You wrote: One. And two.");
  await waitForRest(page);
  expect(await page.evaluate(`document.querySelectorAll(".message").length`)).toBe(2);
});

test("a second tab answers an approval, and the first one learns of it", async () => {
  const { page, server } = await openDesk();
  await send(page, "Please pay Ada.");
  await waitForText(page, "Needs your approval");
  const other = await openPage(`${server.url}?chat=c1`, tokens.ann);
  await clickButton(other, "Approve");
  await waitForText(other, "That is done.");
  await page.bringToFront();
  await clickButton(page, "Approve");
  await waitForText(page, "That is done.");
  await waitForRest(page);
  expect((await read(page)).split("Paid 25 euros to Ada.")).toHaveLength(2);
});

test("a user of another tenant sees nothing of a chat with the same id", async () => {
  const { page, server } = await openDesk();
  await send(page, "A secret of Ann.");
  await waitForText(page, "You wrote: A secret of Ann.");
  const other = await openPage(`${server.url}?chat=c1`, tokens.bob);
  await waitForText(other, "What can I do for you?");
  expect(await read(other)).not.toContain("secret");
  expect(await read(other, ".chats")).toBe("");
  await send(other, "A secret of Bob.");
  await waitForText(other, "You wrote: A secret of Bob.");
  await page.bringToFront();
  await page.reload();
  await waitForText(page, "You wrote: A secret of Ann.");
  expect(await read(page)).not.toContain("Bob");
});

test("a failed run is shown with its reason and can be tried again", async () => {
  const { page } = await openDesk();
  await send(page, "Please fail.");
  await waitForText(page, "Try again", ".banner");
  await page.screenshot({ path: join(screens, "failed.png") });
  expect(await read(page)).not.toContain("the provider is down");
  await clickButton(page, "Try again");
  await waitForText(page, "Try again", ".banner");
});

test("a killed server costs the page nothing: it connects again and shows each word once", async () => {
  const { page, server, restart } = await openDesk();
  await send(page, "Tell me a story.");
  server.say(20);
  await waitForText(page, "word20");
  await server.kill();
  await waitForText(page, "The connection is lost.", ".banner");
  await page.screenshot({ path: join(screens, "connection-lost.png") });
  const next = await restart();
  next.say(60);
  await waitForText(page, "word60");
  await waitForRest(page);
  expect((await read(page, ".message.assistant .text")).trim()).toBe(story);
  expect(await read(page, ".banner")).toBe("");
});
