/** Key of the encrypted file of the test of pages, in both processes. */
import type { Encryption } from "@statewright/store-kit";

export const pageEncryption: Encryption = { keys: () => [{ id: "k1", key: new Uint8Array(32).fill(7) }] };
