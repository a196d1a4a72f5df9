/** The page of the examples with `useStream`, in a real Chromium, against a server in another process. */
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

const { openDesk, openPage } = setUpDesks("use-stream");

test("a wrong token is refused on the page, and a right one opens the chat", async () => {
  const { page } = await openDesk();
  await clickButton(page, "Sign out");
  await page.type("#token", "a-token-of-nobody-at-all");
  await page.click("button[type=submit]");
  await waitForText(page, "This token is not accepted.");
  await page.screenshot({ path: join(screens, "use-stream-refused.png") });
  await page.type("#token", tokens.ann);
  await page.click("button[type=submit]");
  await waitForText(page, "What can I do for you?");
});

test("a person approves a call and denies another, at all sizes in both themes without a sideways scroll", async () => {
  const { page } = await openDesk();
  await page.screenshot({ path: join(screens, "use-stream-empty.png") });
  await send(page, "Please pay Ada.");
  await clickButton(page, "Approve");
  await waitForText(page, "That is done.");
  await waitForRest(page);
  expect(await read(page)).toContain("Paid 25 euros to Ada.");
  await send(page, "Please pay Ada again.");
  await waitForText(page, "Needs your approval");
  for (const theme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
    for (const [width, height] of [
      [390, 844],
      [768, 1024],
      [1280, 800],
    ] as const) {
      await page.setViewport({ width, height });
      await page.screenshot({ path: join(screens, `use-stream-${theme}-${width}.png`) });
      expect([width, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([width, width]);
    }
    expect([theme, await page.evaluate(findLowContrast)]).toEqual([theme, []]);
  }
  await page.type(".approval input", "once is enough");
  await clickButton(page, "Deny");
  await waitForText(page, "I did not do it.");
  expect(await read(page, ".output-error")).toContain("once is enough");
});

test("a reload in the middle of a word shows each word once", async () => {
  const { page, server } = await openDesk();
  await send(page, "Tell me a story.");
  server.say(12);
  await waitForText(page, "word12");
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
  await send(page, "Hello.");
  await waitForText(page, "You wrote: Hello.");
});

test("a regenerated answer is a second branch, and the first one can be shown again", async () => {
  const { page } = await openDesk();
  await send(page, "One.");
  await waitForText(page, "You wrote: One.");
  await waitForRest(page);
  await clickButton(page, "Regenerate");
  await waitForText(page, "2 / 2");
  await page.screenshot({ path: join(screens, "use-stream-branches.png") });
  await page.click("[aria-label='Previous branch']");
  await waitForText(page, "1 / 2");
  expect(await read(page)).toContain("You wrote: One.");
});

test("a second tab answers an approval, and the first one learns of it", async () => {
  const { page } = await openDesk();
  await send(page, "Please pay Ada.");
  await waitForText(page, "Needs your approval");
  const other = await openPage(String(await page.evaluate("window.location.href")), tokens.ann);
  await clickButton(other, "Approve");
  await waitForText(other, "That is done.");
  await page.bringToFront();
  await clickButton(page, "Approve");
  await waitForText(page, "That is done.");
  expect((await read(page)).split("Paid 25 euros to Ada.")).toHaveLength(2);
  await page.screenshot({ path: join(screens, "use-stream-second-tab.png") });
});

test("a user of another tenant sees nothing of a chat at the same address", async () => {
  const { page } = await openDesk();
  await send(page, "A secret of Ann.");
  await waitForText(page, "You wrote: A secret of Ann.");
  const other = await openPage(String(await page.evaluate("window.location.href")), tokens.bob);
  await waitForText(other, "This chat does not exist.");
  expect(await read(other)).not.toContain("secret");
  await other.screenshot({ path: join(screens, "use-stream-other-tenant.png") });
  await clickButton(other, "Start a new chat");
  await waitForText(other, "What can I do for you?");
  expect(await read(other, ".chats")).toBe("");
});

test("a page whose hook has given up on a dead server connects again when a server answers, and shows each word once", async () => {
  const { page, server, restart } = await openDesk();
  await send(page, "Tell me a story.");
  server.say(20);
  await waitForText(page, "word20");
  await server.kill();
  await waitForText(page, "The connection is lost. Connecting again…");
  await page.screenshot({ path: join(screens, "use-stream-lost.png") });
  const next = await restart();
  next.say(60);
  await waitForText(page, "word60");
  await waitForRest(page);
  expect((await read(page, ".message.assistant .text")).trim()).toBe(story);
  expect(await read(page, ".banner")).toBe("");
});

test("a killed server costs the page nothing: it connects again and shows each word once", async () => {
  const { page, server, restart } = await openDesk();
  await send(page, "Tell me a story.");
  server.say(20);
  await waitForText(page, "word20");
  await server.kill();
  const next = await restart();
  next.say(60);
  await waitForText(page, "word60");
  await waitForRest(page);
  expect((await read(page, ".message.assistant .text")).trim()).toBe(story);
});
