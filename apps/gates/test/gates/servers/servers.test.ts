/** Server processes that are killed, that share a file, and that replace each other, under clients of each protocol. */
import process from "node:process";
import { expect, test } from "vitest";
import { clientProtocols } from "../../../src/servers/chat-client.ts";
import { balanceServers, killServers, replaceServers, type ServersReport } from "../../../src/servers/run-servers.ts";

/** Kills for each protocol. */
const count = Number(process.env["STATEWRIGHT_SERVER_KILLS"] ?? 2);
const seed = Number(process.env["STATEWRIGHT_SERVER_SEED"] ?? 1);
const rounds = Math.max(1, Math.ceil(count / 4));
const timeoutMs = 120_000 + count * 60_000;

function expectSound(name: string, { conversations, reconnections, violations }: ServersReport): void {
  console.log(`servers, ${name}: ${conversations} conversations, ${reconnections} reconnections`);
  expect(violations).toEqual([]);
}

test("clients of each protocol end with the right text after a kill of the server at a random moment, and nothing is paid twice [V120]", {
  timeout: timeoutMs,
}, async () => {
  const kills = count * clientProtocols.length;
  expectSound(`${kills} kills`, await killServers(kills, seed));
});

test("clients of each protocol read each text once from two processes behind a balancer, and either process cancels a run of the other [V121]", {
  timeout: timeoutMs,
}, async () => {
  expectSound("two processes", await balanceServers(rounds));
});

test("clients of each protocol read each text to its end, without an error, while one server replaces another [V129]", {
  timeout: timeoutMs,
}, async () => {
  expectSound("rolling restarts", await replaceServers(rounds));
});
