"""Configured names of queues on the web."""

from __future__ import annotations

INBOUND = b"""\
<?xml version="1.0"?>
<!-- As an administrator of Windows writes it. -->
<redirections xmlns="msmq-queue-redirections.xml">
  <redirection>
    <from>http://www.example.com/msmq/orders*</from>
    <to>
      http://inner/msmq/private$/orders
    </to>
  </redirection>
  <redirection><from>http://www.example.com/msmq/a&amp;b</from><to>http://inner/msmq/q</to></redirection>
</redirections>
"""
OUTBOUND = b"""\
<outbound_redirections xmlns="msmq_outbound_mapping.xml">
  <redirection><destination>http://far.example.com/*</destination><through>http://relay</through></redirection>
  <exceptions><exception>http://far.example.com/msmq/direct</exception><exception>https://*</exception></exceptions>
</outbound_redirections>
"""
RECEIPTS = b"""\
<m:StreamReceiptSetup xmlns:m="msmq-streamreceipt-mapping.xml">
  <m:setup>
    <m:LogicalAddress>http://far.example.com/*</m:LogicalAddress>
    <m:StreamReceiptURL>http://nat.example.com/msmq/private$/order_queue$</m:StreamReceiptURL>
  </m:setup>
  <m:default>https://nat.example.com/msmq/private$/order_queue$</m:default>
</m:StreamReceiptSetup>
"""
