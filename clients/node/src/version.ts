/** That of this kit, and of the momus that it is made for. */
export const VERSION = "0.1.0";

/** The number of the control plane's words that this kit knows. */
export const API = 1;
