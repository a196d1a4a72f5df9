import { randomBytes } from "node:crypto";
import { computeColumnSum, createStoreCipher } from "@statewright/store-kit";

const key = { id: "2026", key: randomBytes(32) };
const cipher = createStoreCipher({ keys: () => [key] });
const secret = cipher.createSecret("t1");
const thread = cipher.getThreadCipher("t1", secret);

const place = ["orders.total", "main", 7];
const stored = thread.encrypt("42", place);
console.log(thread.decrypt(stored, place));
console.log(computeColumnSum(["total", 42]));
